"""Text files, one sentence per line, read strictly: invalid Unicode is an error, never repaired."""

import bz2
import codecs
import gzip
import io
import itertools
import lzma
import re
import zlib
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO, NamedTuple

from kzoo.errors import UserError
from kzoo.files import POINTER, check_file_name

CHUNK = 1 << 20  # bytes
LONGEST_LINE = 16_000_000  # characters: a packed file may hold a line larger than the memory
DAMAGED = (OSError, EOFError, zlib.error, lzma.LZMAError)  # what reading a damaged file raises
# A text is packed to a tenth; a file of zeros, to a thousandth.
MOST_PACKED, SUSPICIOUS = 100, 2**27  # times, bytes
# Packed files are recognized by their name's ending or by their first bytes.
PACKED = {".gz": gzip, ".bz2": bz2, ".xz": lzma}
BEGINS = {gzip: rb"\x1f\x8b\x08", bz2: rb"BZh[1-9]1AY&SY", lzma: rb"\xfd7zXZ\x00"}
# To write them: gzip without name and time, so that the same text gives the same bytes.
PACKERS = {
    ".gz": partial(gzip.GzipFile, "", "wb", 9, mtime=0),
    ".bz2": partial(bz2.open, mode="wb"),
    ".xz": partial(lzma.open, mode="wb"),
}
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
    re.escape(POINTER): "a pointer of Git LFS",
}
# Formats of text that is no sentence per line: how they begin, and the endings of their names.
NOT_LINES = {
    rb"\s*\d+\s*\n\d+:\d\d:\d\d[,.]\d+ --> ": "SubRip subtitles",
    rb"WEBVTT\s": "WebVTT subtitles",
    rb"\[Script Info\]": "SubStation subtitles",
    rb'\s*(\[\s*)?\{\s*"[^"\n]*"\s*:': "JSON",
    rb'\s*\[\s*"([^"\\\n]|\\.)*"\s*,\s*"': "JSON",
    rb"(?i)\s*<(\?xml|!DOCTYPE|html|tmx|xliff|srcset|refset|tstset)\b": "HTML or XML",
    rb'(\s|#[^\n]*\n)*msgid "': "a catalogue of gettext",
}
ENDINGS = {
    ".srt .vtt .sbv .ssa .ass": "subtitles",
    ".json .jsonl .ndjson": "JSON",
    ".htm .html .xhtml .xml .tmx .tbx .xliff .xlf .sdlxliff .mqxliff .sgm .sgml .resx": "HTML or XML",
    ".po .pot": "a catalogue of gettext",
    ".properties .strings .yml .yaml .arb": "a program's texts with their keys",
    ".doc .docx .odt .pdf .pptx .rtf .epub .md .tex": "a document",
    ".xls .xlsx .ods": "a spreadsheet",
    ".parquet .arrow": "a table in binary form",
}
BY_ENDING = {ending: what for endings, what in ENDINGS.items() for ending in endings.split()}
AS_LINES = "write its sentences to a text file, one per line (a table: .tsv or .csv), and give that"
# UTF-32 first: its byte order mark begins with UTF-16's.
ENCODINGS = {
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}


class Text(NamedTuple):
    """The sentences of one language of one split, and their source, such as a file, named in errors.

    `rows` are the numbers that they have there, from 0; `None`: all rows of the source.
    """

    where: str
    sentences: list[str]
    rows: Sequence[int] | None = None


def read_lines(path: Path, encoding: str = "") -> Text:
    """Return the lines of a text file, packed or not.

    Args:
        path: the file.
        encoding: such as "gb18030"; by default UTF-8, or UTF-16 or UTF-32 with a byte order mark.

    Raises:
        UserError: it cannot be read, is broken or not plain text, or a line is not in its encoding.
    """
    return Text(str(path), list(stream_lines(path, encoding)))


def stream_lines(path: Path, encoding: str = "") -> Iterator[str]:
    """Yield the lines that `read_lines` returns; raise its errors."""
    check_file_name(path)
    if path.is_file() and (what := BY_ENDING.get(Path(unpacked_name(path)).suffix)):
        raise UserError(f"{path}: is {what}, not plain text: {AS_LINES}")
    packing = PACKED.get(path.suffix.lower())
    try:
        with open(path, "rb") as file:
            head = file.peek(8)
            packing = packing or next((one for one, begins in BEGINS.items() if re.match(begins, head)), None)
            yield from decode_lines(packing.open(file) if packing else file, str(path), encoding)
    except DAMAGED as error:
        if getattr(error, "errno", None) is None:  # not from the operating system
            raise UserError(f"{path}: broken {packing.__name__} file ({error})") from None
        raise UserError(f"{path}: cannot be read ({error.strerror})") from None


def decode_lines(file: BinaryIO, where: str, encoding: str = "", any_text: bool = False) -> Iterator[str]:
    """Yield the lines of text.

    Only line feeds end lines (or carriage returns, if there are none): sentences may contain U+2028.

    Args:
        file: the text; carriage returns before a line feed are dropped, as is a byte order mark, unless
            there is an `encoding`.
        where: name of the text in errors.
        encoding: as in `read_lines`.
        any_text: bool. Whether the text may begin like another file format.

    Raises:
        UserError: it begins like another file format, unless `any_text`; or a line is not in its encoding,
            has a NUL, or is longer than any text.
    """
    file = io.BufferedReader(file, CHUNK)
    head, number = file.peek(), 0
    for begins, what in () if any_text else NOT_TEXT.items():
        if re.match(begins, head):
            raise UserError(f"{where}: is {what}, not text: save it as UTF-8 text, plain or packed as .gz")
    for begins, what in () if any_text else NOT_LINES.items():
        if re.match(begins, head.removeprefix(codecs.BOM_UTF8)):
            raise UserError(f"{where}: is {what}, not plain text: {AS_LINES}")
    marked = next((name for mark, name in ENCODINGS.items() if head.startswith(mark)), "utf-8-sig")
    end = "\r" if b"\r" in head and b"\n" not in head else "\n"
    text = io.TextIOWrapper(file, encoding or marked, newline=end)
    try:
        for number, line in enumerate(iter(partial(text.readline, LONGEST_LINE), ""), 1):
            if len(line) == LONGEST_LINE:
                raise UserError(
                    f"{where}, line {number}: has over {LONGEST_LINE:,} characters, which is no sentence"
                )
            if "\0" in line:
                raise UserError(
                    f"{where}, line {number}: a NUL, which is not text; is this UTF-16, or a damaged file?"
                )
            yield line.rstrip("\r\n")
    except UnicodeDecodeError as error:
        number += error.object[: error.start].decode(error.encoding).count(end) + 1
        raise UserError(
            f"{where}, line {number}: not valid {(encoding or error.encoding).upper()} ({error.reason})"
        ) from None


def unpacked_name(path: Path) -> str:
    """Return a file's name in lower case, without an ending such as `.gz`."""
    return (path.stem if path.suffix.lower() in PACKED else path.name).lower()


def open_unpacked(path: Path) -> BinaryIO:
    """Open a file for reading; unpack it, if its name has an ending such as `.gz`."""
    packing = PACKED.get(path.suffix.lower())
    return packing.open(path) if packing else open(path, "rb")


def plain_lines(lines: Iterable[str], where: str, remedy: str) -> Iterator[str]:
    """Yield the lines of a text in one language; then raise an error if every line has a tab, as in a table.

    The error names the text as `where`, and ends with `remedy`.
    """
    count = tabs = 0
    for line in lines:
        count, tabs = count + 1, tabs + ("\t" in line)
        yield line
    if 0 < count == tabs:
        raise UserError(f"{where}: every line has a tab, as in a table: {remedy}")


def aligned(sides: Sequence[Iterator[str]], names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield the rows of texts that are aligned by line.

    Args:
        sides: the lines of each text.
        names: what the texts are called in errors.

    Raises:
        UserError: they have different numbers of lines.
    """
    ended = object()
    for count, row in enumerate(itertools.zip_longest(*sides, fillvalue=ended)):
        if ended in row:
            each = zip(row, sides, strict=True)
            counts = [count + (line is not ended) + sum(1 for _ in rest) for line, rest in each]
            other = next(number for number, found in enumerate(counts) if found != counts[0])
            raise _not_aligned(names[0], counts[0], names[other], counts[other])
        yield row


def check_aligned(left: Text, right: Text):
    """Raise `UserError` if two texts have different numbers of lines."""
    if len(left.sentences) != len(right.sentences):
        raise _not_aligned(left.where, len(left.sentences), right.where, len(right.sentences))


def _not_aligned(left: str, left_lines: int, right: str, right_lines: int) -> UserError:
    """Return the error for two files with different numbers of lines."""
    return UserError(
        f"{left} has {left_lines:,} lines but {right} has {right_lines:,}: "
        "each line must be the translation of the same line in the other file"
    )


def check_unpacked_size(where: str, size: int, packed: int):
    """Raise `UserError` for `packed` bytes that unpack to far more, `size`, than those of text would."""
    times = size / max(packed, 1)
    if size > SUSPICIOUS and times > MOST_PACKED:
        raise UserError(
            f"{where} unpacks to {size / 1e9:.1f} GB, {times:,.0f} times its size, which is no text"
        )
