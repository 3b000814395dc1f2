"""Aligned text of any length, read line by line, as strictly as `kzoo.data.text_files` reads a whole file."""

import gzip
import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kzoo.errors import UserError

CHUNK = 1 << 20  # bytes


def stream_pairs(files: Sequence[Path]) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of aligned text, `(source, target)`.

    Args:
        files: two text files, one sentence per line, or one TSV file of two columns; each may be gzipped.

    Raises:
        UserError: as for `stream_lines`; or a row without exactly two columns, or files with different
            numbers of lines.
    """
    return _columns(*files) if len(files) == 1 else _aligned(*files)


def stream_lines(path: Path) -> Iterator[str]:
    """Yield the lines that `read_lines` returns.

    Args:
        path: the file, unpacked if its name ends in `.gz`.

    Raises:
        UserError: it cannot be read, is a broken gzip file, or is not UTF-8 (with the line).
    """
    before, rest = 0, b""
    for chunk in itertools.chain(_chunks(path), [None]):  # `None`: flush the text after the last line feed
        whole, newline, left = (rest, b"", b"") if chunk is None else (rest + chunk).rpartition(b"\n")
        rest = left
        if not whole and not newline:
            continue
        try:
            text = whole.decode("utf-8")
        except UnicodeDecodeError as error:
            number = before + whole.count(b"\n", 0, error.start) + 1
            raise UserError(f"{path}, line {number}: not valid UTF-8 ({error.reason})") from None
        if before == 0 and not (text := text.removeprefix("\ufeff")) and not newline:
            continue
        lines = text.split("\n")
        before += len(lines)
        yield from (line.removesuffix("\r") for line in lines)


def _chunks(path: Path) -> Iterator[bytes]:
    lines = 0
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            while chunk := file.read1(CHUNK):
                lines += chunk.count(b"\n")
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise UserError(f"{path}: broken gzip file, noticed after line {lines} ({error})") from None
    except OSError as error:
        raise UserError(f"{path}: cannot be read ({error.strerror or error})") from None


def _aligned(left: Path, right: Path) -> Iterator[tuple[str, str]]:
    sides, ended = (stream_lines(left), stream_lines(right)), object()
    for count, pair in enumerate(itertools.zip_longest(*sides, fillvalue=ended)):
        if ended in pair:
            longer = count + 1 + sum(1 for _ in itertools.chain(*sides))
            counts = (count, longer) if pair[0] is ended else (longer, count)
            raise UserError(
                f"{left} has {counts[0]:,} lines but {right} has {counts[1]:,}: "
                "line by line they must be translations of each other"
            )
        yield pair


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(stream_lines(path), 1):
        row = line.split("\t")
        if len(row) != 2:
            raise UserError(
                f"{path}, line {number}: {len(row)} columns instead of 2 "
                "(one per language, separated by tabs)"
            )
        yield row[0], row[1]
