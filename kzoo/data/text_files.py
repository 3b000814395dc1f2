"""Text files, one sentence per line, read strictly: invalid Unicode is an error, never repaired."""

import bz2
import codecs
import gzip
import itertools
import lzma
import re
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kzoo.errors import UserError

CHUNK = 1 << 20  # bytes
# Packed files are recognized by their name's ending or by their first bytes.
PACKED = {
    "gzip": (".gz", rb"\x1f\x8b\x08", gzip.open),
    "bzip2": (".bz2", rb"BZh[1-9]1AY&SY", bz2.open),
    "xz": (".xz", rb"\xfd7zXZ\x00", lzma.open),
}
HEAD = 512  # bytes that are enough to recognize these
NOT_TEXT = {
    rb"PK\x03\x04": "a ZIP archive or a spreadsheet",
    rb"\xd0\xcf\x11\xe0": "a spreadsheet or document",
    rb"%PDF-": "a PDF document",
    rb"{\\rtf": "an RTF document",
    rb"7z\xbc\xaf": "a 7z archive",
    rb"Rar!\x1a": "a RAR archive",
    rb"\x28\xb5\x2f\xfd": "packed by Zstandard",
    rb"\x5d\x00\x00": "packed by LZMA",
    rb"\x1f\x9d": "packed by compress",
    rb"(?s:.{257}ustar)": "a tar archive",
}
# UTF-32 first: its byte order mark begins with UTF-16's.
ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Text(NamedTuple):
    """The sentences of one language of one split, and where they are from, such as a file, for errors."""

    where: str
    sentences: list[str]


def read_lines(path: Path) -> Text:
    """Return the lines of a text file, packed or not.

    Args:
        path: the file: UTF-8, or UTF-16 or UTF-32 with a byte order mark.

    Raises:
        UserError: it cannot be read, is broken or not text, or a line is not in its encoding.
    """
    return Text(str(path), decode_lines(b"".join(text_chunks(path)), str(path)))


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file, unpacked.

    Raises:
        UserError: it cannot be read or is broken.
    """
    return b"".join(_chunks(path))


def text_chunks(path: Path) -> Iterator[bytes]:
    """Yield the contents of a text file, unpacked, in UTF-8; raise errors as `read_lines`."""
    return as_utf8(_chunks(path), str(path))


def check_text(path: Path):
    """Raise `UserError` for a file that cannot be read or does not begin like text."""
    next(text_chunks(path))


def as_utf8(chunks: Iterable[bytes], where: str) -> Iterator[bytes]:
    """Yield text in UTF-8, converted if it begins with a byte order mark of UTF-16 or UTF-32.

    Args:
        chunks: the text, in parts.
        where: its name in errors.

    Raises:
        UserError: it does not begin like text, or is not in its encoding.
    """
    chunks, head = iter(chunks), b""
    while len(head) < HEAD and (chunk := next(chunks, b"")):
        head += chunk
    for begins, what in NOT_TEXT.items():
        if re.match(begins, head):
            raise UserError(f"{where}: is {what}, not text: save it as UTF-8 text, plain or packed as .gz")
    chunks = itertools.chain([head], chunks)
    encoding = next((name for mark, name in ENCODINGS.items() if head.startswith(mark)), None)
    if encoding is None:
        yield from chunks
        return
    decoder = codecs.getincrementaldecoder(encoding)()
    try:
        for chunk in chunks:
            yield decoder.decode(chunk).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError as error:
        raise UserError(f"{where}: not valid {encoding.upper()} ({error.reason}): save it as UTF-8") from None


def unpacked_name(path: Path) -> str:
    """Return a file's name in lower case, without an ending such as `.gz`."""
    name = path.name.lower()
    return next((name.removesuffix(end) for end, _, _ in PACKED.values() if name.endswith(end)), name)


def packing_of(path: Path) -> Callable | None:
    """Return the function that opens a packed file, by its name's ending; `None` for a plain file."""
    return next((packing for end, _, packing in PACKED.values() if path.name.lower().endswith(end)), None)


def _chunks(path: Path) -> Iterator[bytes]:
    lines, packing = 0, ""
    try:
        with open(path, "rb") as file:
            head = file.peek(8)
            for name, (end, begins, unpacking) in PACKED.items():
                if path.name.lower().endswith(end) or re.match(begins, head):
                    packing, file = name, unpacking(file)
                    break
            while chunk := file.read1(CHUNK):
                lines += chunk.count(b"\n")
                yield chunk
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: broken {packing} file, noticed after line {lines} ({error})") from None
    except OSError as error:
        if error.errno is None and packing:  # an error of bzip2
            raise UserError(f"{path}: broken {packing} file, noticed after line {lines} ({error})") from None
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def decode_lines(data: bytes, where: str, before: int = 0) -> list[str]:
    """Return the lines of UTF-8 text.

    Only line feeds end lines (carriage returns in a text without any), since sentences may contain U+2028.

    Args:
        data: the text; a byte order mark and carriage returns before a line feed are dropped.
        where: name of the text in errors.
        before: int. Number of lines before `data`, if that is not the beginning of the text.

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
    text = text if before else text.removeprefix("\ufeff")
    lines = text.split("\n" if "\n" in text or before else "\r")
    if not lines[-1]:  # nothing after the last line feed, or an empty file
        lines.pop()
    return [line.rstrip("\r") for line in lines]


def stream_lines(path: Path) -> Iterator[str]:
    """Yield the lines that `read_lines` returns.

    Args:
        path: the file.

    Raises:
        UserError: as for `read_lines`.
    """
    before, rest = 0, b""
    for chunk in text_chunks(path):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        lines = decode_lines(whole + newline, str(path), before)
        before += len(lines)
        yield from lines
    yield from decode_lines(rest, str(path), before)  # the text after the last line feed


def plain_lines(lines: Iterable[str], where: str, remedy: str) -> Iterator[str]:
    """Yield the lines of text in one language; after the last, refuse a table, in which every line has a tab.

    Args:
        lines: the text.
        where: its name in the error.
        remedy: what to do, for the error.

    Raises:
        UserError: it is a table.
    """
    count = tabs = 0
    for line in lines:
        count, tabs = count + 1, tabs + ("\t" in line)
        yield line
    if 0 < count == tabs:
        raise UserError(f"{where}: every line has a tab, as in a table: {remedy}")


def check_aligned(left: Text, right: Text):
    """Raise `UserError` if two texts have different numbers of lines."""
    if len(left.sentences) != len(right.sentences):
        raise not_aligned(left.where, len(left.sentences), right.where, len(right.sentences))


def not_aligned(left: str, left_lines: int, right: str, right_lines: int) -> UserError:
    """Return the error for two files with different numbers of lines."""
    return UserError(
        f"{left} has {left_lines:,} lines but {right} has {right_lines:,}: "
        "each line must be the translation of the same line in the other file"
    )
