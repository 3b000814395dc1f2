"""Aligned text of any length, read line by line, as strictly as `kzoo.data.text_files` reads a whole file."""

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

from kzoo.data.tables import Columns, table_rows
from kzoo.data.text_files import decode_lines, not_aligned, text_chunks


def stream_pairs(
    files: Sequence[Path], languages: Sequence[str], columns: Columns = ()
) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of aligned text, `(source, target)`.

    Args:
        files: two text files, one sentence per line, or one table.
        languages: codes of the two languages.
        columns: as in `open_files`.

    Raises:
        UserError: as for `stream_lines`; or a row without exactly two columns, or files with different
            numbers of lines.
    """
    if len(files) == 1:
        return map(tuple, table_rows(files[0], stream_lines(files[0]), languages, columns))
    return _aligned(*files)


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


def _aligned(left: Path, right: Path) -> Iterator[tuple[str, str]]:
    sides, ended = (stream_lines(left), stream_lines(right)), object()
    for count, pair in enumerate(itertools.zip_longest(*sides, fillvalue=ended)):
        if ended in pair:
            longer = count + 1 + sum(1 for _ in itertools.chain(*sides))
            counts = (count, longer) if pair[0] is ended else (longer, count)
            raise not_aligned(str(left), counts[0], str(right), counts[1])
        yield pair
