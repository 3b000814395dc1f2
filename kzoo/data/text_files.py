"""Text files, one sentence per line, read strictly: invalid UTF-8 is reported, not repaired."""

import gzip
import io
import zlib
from pathlib import Path
from typing import NamedTuple

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
        UserError: it cannot be read, is a broken gzip file, or is not UTF-8 text (with the line).
    """
    return Text(str(path), decode_lines(read_bytes(path), str(path)))


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file, unpacked if its name ends in `.gz`.

    Raises:
        UserError: it cannot be read, or is a broken gzip file.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None
    if path.suffix != ".gz":
        return data
    text, broken = unpack(data)
    if broken:
        lines = text.count(b"\n")
        raise UserError(f"{path}: broken gzip file, noticed after line {lines} ({broken})")
    return text


def unpack(packed: bytes | bytearray) -> tuple[bytes, str]:
    """Return the text in a gzip file up to the first error, and the error ("" if there is none).

    Args:
        packed: the bytes of the gzip file.

    Example:
        >>> unpack(gzip.compress(b"one"))
        (b'one', '')
    """
    text = bytearray()
    try:
        with gzip.open(io.BytesIO(packed)) as file:
            while block := file.read1():  # in small steps: an error loses nothing before it
                text += block
    except (OSError, EOFError, zlib.error) as error:
        return bytes(text), str(error)
    return bytes(text), ""


def decode_lines(data: bytes, where: str, before: int = 0) -> list[str]:
    """Return the lines of UTF-8 text. Only line feeds end lines: sentences may contain U+2028, U+0085 etc.

    Args:
        data: the text; a byte order mark and carriage returns before a line feed are dropped.
        where: name of the text in error messages.
        before: int. Number of lines that precede `data`, if that is not the beginning of the text.

    Raises:
        UserError: a line is not UTF-8, or has a NUL.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = before + data.count(b"\n", 0, error.start) + 1
        raise UserError(f"{where}, line {number}: not valid UTF-8 ({error.reason})") from None
    if "\0" in text:
        number = before + text.count("\n", 0, text.index("\0")) + 1
        raise UserError(
            f"{where}, line {number}: a NUL, which is not text; is this UTF-16, or a damaged file?"
        )
    lines = (text if before else text.removeprefix("\ufeff")).split("\n")
    if not lines[-1]:  # what follows the last line feed, or an empty file
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def split_row(line: str, columns: int, where: str, number: int) -> list[str]:
    """Return the columns of line `number` of a TSV file.

    Raises:
        UserError: it has fewer or more.
    """
    row = line.split("\t")
    if len(row) != columns:
        raise UserError(
            f"{where}, line {number}: {len(row)} columns instead of {columns} "
            "(one per language, separated by tabs)"
        )
    return row


def not_aligned(left: str, left_lines: int, right: str, right_lines: int) -> UserError:
    """Return the error of two files whose lines are not translations of each other."""
    return UserError(
        f"{left} has {left_lines:,} lines but {right} has {right_lines:,}: "
        "line by line they must be translations of each other"
    )
