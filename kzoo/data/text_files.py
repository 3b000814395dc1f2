"""Text files, one sentence per line, read strictly: invalid UTF-8 is reported, not repaired."""

from pathlib import Path
from typing import NamedTuple

from kzoo.data.download import unpack
from kzoo.errors import UserError


class Text(NamedTuple):
    """The sentences of one language of one split, and where they are from (a file; for error messages)."""

    where: str
    sentences: list[str]


def read_lines(path: Path) -> Text:
    """Return the lines of a text file, unpacked if its name ends in `.gz`.

    Args:
        path: the file.

    Raises:
        UserError: it cannot be read, is a broken gzip file, or is not UTF-8 (with the line).
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    if path.suffix == ".gz":
        data, broken = unpack(data)
        if broken:
            lines = data.count(b"\n")
            raise UserError(f"{path}: broken gzip file, noticed after line {lines} ({broken})")
    return Text(str(path), decode_lines(data, str(path)))


def decode_lines(data: bytes, where: str, before: int = 0) -> list[str]:
    """Return the lines of UTF-8 text. Only line feeds end lines: sentences may contain U+2028, U+0085 etc.

    Args:
        data: the text; a byte order mark and a carriage return before a line feed are dropped.
        where: name of the text in error messages.
        before: int. Number of lines that precede `data`, if that is not the beginning of the text.

    Raises:
        UserError: a line is not UTF-8.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = before + data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}, line {number}: not valid UTF-8 ({error.reason})") from None
    lines = (text if before else text.removeprefix("\ufeff")).split("\n")
    if not lines[-1]:  # what follows the last line feed, or an empty file
        lines.pop()
    return [line.removesuffix("\r") for line in lines]
