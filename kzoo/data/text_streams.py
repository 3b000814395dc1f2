"""Aligned text of any length, read line by line, as strictly as `kzoo.data.text_files` reads a whole file."""

import gzip
import itertools
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from kzoo.data.text_files import decode_lines, not_aligned, split_row
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
        UserError: it cannot be read, is a broken gzip file, or is not UTF-8 text (with the line).
    """
    before, rest = 0, b""
    for chunk in _chunks(path):
        whole, newline, rest = (rest + chunk).rpartition(b"\n")
        lines = decode_lines(whole + newline, str(path), before)
        before += len(lines)
        yield from lines
    yield from decode_lines(rest, str(path), before)  # the text after the last line feed


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
            raise not_aligned(str(left), counts[0], str(right), counts[1])
        yield pair


def _columns(path: Path) -> Iterator[tuple[str, str]]:
    for number, line in enumerate(stream_lines(path), 1):
        source, target = split_row(line, 2, str(path), number)
        yield source, target
