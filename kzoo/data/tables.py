"""Tables of aligned sentences, a language in each column: TSV and CSV files."""

import csv
import itertools
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kzoo.data.text_files import unpacked_name
from kzoo.errors import UserError

Columns = Sequence[int] | Sequence[str]  # numbers from 1, or names in a first line
SEPARATORS = ",;\t"  # of CSV: spreadsheets write a semicolon where the comma is in numbers
SAMPLE = 100  # lines by which the separator is found
TITLES = {"source", "target", "src", "tgt", "trg", "sentence", "text", "translation", "reference"}


def is_table(path: Path) -> bool:
    """Return whether a file's name, without the ending of its packing, ends in `.tsv` or `.csv`."""
    return unpacked_name(path).endswith((".tsv", ".csv"))


def table_rows(
    path: Path, lines: Iterable[str], languages: Sequence[str], columns: Columns = ()
) -> Iterator[list[str]]:
    """Yield the rows of a table: the sentence of each language.

    In TSV a tab separates columns, whatever else a row has; CSV has quotes.

    Args:
        path: the file.
        lines: its lines.
        languages: the codes.
        columns: of each language: numbers from 1; or names, which the first line has. Empty: all columns.

    Raises:
        UserError: a row without these columns, a first line of titles, or CSV that cannot be understood.
    """
    wanted, count = list(columns), len(languages)
    rows, first = _numbered(path, iter(lines), len(wanted) or count), 0
    if wanted and isinstance(wanted[0], str):
        _, titles = next(rows, (1, []))
        if missing := [name for name in wanted if name not in titles]:
            raise UserError(f"{path}, line 1: no column {missing[0]!r}; it has {', '.join(titles)}")
        wanted, first = [titles.index(name) + 1 for name in wanted], 1
    for place, (number, row) in enumerate(rows):
        if len(row) != count if not wanted else len(row) < max(wanted):
            needed = f"at least {max(wanted)}" if wanted else f"{count}, one per language"
            how = "" if wanted else '; columns = [1, 2] or ["en", "de"] in a recipe names those to read'
            raise UserError(f"{path}, line {number}: {len(row)} columns instead of {needed}{how}")
        row = [row[column - 1] for column in wanted] if wanted else row
        if place == first == 0 and {cell.strip().lower() for cell in row} <= {
            *map(str.lower, languages),
            *TITLES,
        }:
            raise UserError(
                f"{path}, line 1: these are titles ({', '.join(row)}): remove the line, or name the columns "
                f"in a recipe, as in columns = {row}"
            )
        yield row


def _numbered(path: Path, lines: Iterator[str], least: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows, with the number of the line in which each ends."""
    if unpacked_name(path).endswith(".tsv"):
        yield from ((number, line.split("\t")) for number, line in enumerate(lines, 1))
        return
    if not (sample := list(itertools.islice(lines, SAMPLE))):
        return
    separator = _separator(path, sample, least)
    reader = csv.reader(
        (f"{line}\n" for line in itertools.chain(sample, lines)), delimiter=separator, strict=True
    )
    try:
        for row in reader:
            # A cell may have several lines.
            yield reader.line_num, [re.sub(r"\s*\n\s*", " ", cell) for cell in row]
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not CSV ({error})") from None


def _separator(path: Path, sample: list[str], least: int) -> str:
    """Return the separator with which all rows have equally many columns, and enough."""
    found = {}
    for separator in SEPARATORS:
        reader = csv.reader([f"{line}\n" for line in sample], delimiter=separator)
        widths = {len(row) for row in list(reader)[: SAMPLE - 1]}  # the last one may be cut
        if len(widths) == 1 and (width := widths.pop()) >= least:
            found[separator] = width
    exact = [separator for separator, width in found.items() if width == least] or list(found)
    if len(exact) != 1:
        raise UserError(
            f"{path}: its rows do not have equally many columns, {least} or more, whether commas, semicolons "
            "or tabs separate them: put quotes around the sentences, or save it as TSV"
        )
    return exact[0]
