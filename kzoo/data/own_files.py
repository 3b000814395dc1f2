"""The user's own parallel text: aligned files or tables, read whole or line by line."""

import csv
import functools
import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from kzoo.data.cleaning import OddRows, odd_rows
from kzoo.data.corpora import Corpus
from kzoo.data.held_out import SPLITS, selected
from kzoo.data.parallel_files import is_parallel_file, parallel_rows
from kzoo.data.text_files import Text, aligned, plain_lines, stream_lines, unpacked_name
from kzoo.errors import UserError
from kzoo.text.languages import english_name, matching_code

Paths = str | Path | Sequence[str | Path]
Columns = Sequence[int] | Sequence[str]  # numbers from 1, or names in a first line
SEPARATORS = ",;\t"  # of CSV: spreadsheets write semicolons in locales with decimal commas
SAMPLE = 100  # lines from which the separator is inferred
NAME_IT = "name it .tsv, or give a column of it"
TITLES = {
    *("source", "target", "src", "tgt", "trg", "sentence", "text", "translation", "reference"),
    *("english", "german", "deutsch", "french", "français", "czech", "čeština", "spanish", "español"),
    *("chinese", "中文", "indonesian", "russian", "русский", "italian", "italiano", "japanese", "日本語"),
}


def open_files(
    train: Paths | None = None,
    val: Paths | int | float | None = None,
    test: Paths | int | float | None = None,
    languages: Sequence[str] | None = None,
    columns: Columns = (),
    clean: bool = False,
    approved: bool = False,
) -> Corpus:
    """Return the user's own files as a corpus.

    Args:
        train: text files aligned by line, one per language in the order of `languages`, or tables (`.tsv` or
            `.csv`), read one after the other: UTF-8, or UTF-16 or UTF-32 with a byte order mark, plain or
            packed (`.gz`, `.bz2`, `.xz`). Tables may also be what `kzoo.data.parallel_files` reads: TMX,
            XLIFF, archives of OPUS, JSON lines, Parquet, or folders of the library `datasets`.
        val: the same for the validation split; or the part of `train` to hold out, as `split_rows` does: a
            number of rows or, below 1, a share.
        test: the same for the test split; with two languages, further files are further references.
        languages: the codes of the files or columns, two or more; by default en and de, whatever the files'
            endings.
        columns: the columns to read from a table with more of them: numbers from 1, or names in its first
            line, in the order of `languages`.
        clean: leave out rows of `train` that are not worth training on, before others are held out: those
            with an empty side or odd lengths, copies, and rows with equal sides if they are many.
        approved: read only the approved translations of XLIFF files.

    Raises:
        UserError: no split, a file that does not exist or is not plain text, neither one file per language
            nor one table, a file whose ending names another of the languages, or no row is left.

    Example:
        >>> corpus = open_files(train=("train.id", "train.zh"), val="val.tsv.gz", languages=("id", "zh"))
        >>> corpus.splits
        ('train', 'val')
    """
    any_endings = languages is None
    languages = ("en", "de") if any_endings else languages
    if isinstance(languages, str) or len(languages) < 2 or len(set(languages)) < len(languages):
        raise UserError(f"languages is {languages!r}: give at least two different language codes")
    languages, given = tuple(languages), dict(zip(SPLITS, (train, val, test), strict=True))
    different = len(set(columns)) == len(columns) == len(languages)
    names = all(isinstance(column, str) for column in columns)
    if columns and not (different and (names or all(isinstance(c, int) and c > 0 for c in columns))):
        raise UserError(
            f"columns is {list(columns)!r}: give different names, or different numbers from 1, for "
            f"{', '.join(languages)}"
        )
    parts = {split: part for split, part in given.items() if isinstance(part, int | float)}
    files = {
        split: _files(split, paths, len(languages))
        for split, paths in given.items()
        if paths is not None and split not in parts
    }
    for split, paths in {} if any_endings else files.items():
        _check_endings(split, paths, languages)
    if not files:
        raise UserError("no files: give at least one of train, val and test")

    @functools.cache
    def table(split: str) -> list[list[str]]:
        rows = rows_of_tables(files[split], languages, columns, approved)
        return [list(side) for side in zip(*rows, strict=True)] or [[] for _ in languages]

    @functools.cache
    def read(split: str, language: str) -> Text:
        column, paths = languages.index(language), files[split]
        if not is_table(paths[0]):
            return _read_text(paths[column])
        return Text(" and ".join(map(str, paths)), table(split)[column])

    @functools.cache
    def further(split: str) -> list[Text]:
        paths = files.get(split, ())
        return [_read_text(path) for path in paths[len(languages) :] if not is_table(path)]

    @functools.cache
    def odd() -> list[OddRows]:
        return odd_rows([read("train", language).sentences for language in languages])

    about = "files", languages, tuple(files), "the user's own", ""
    return selected(Corpus(*about, read, further_references=further, odd_rows=odd), parts, clean)


def _files(split: str, paths: Paths, count: int) -> tuple[Path, ...]:
    """Return the text files of a split, or its tables; all must exist."""
    if isinstance(paths, str | Path):
        paths = (paths,)
    files = tuple(Path(os.path.expanduser(path)) for path in paths)
    tables = [file for file in files if is_table(file)]
    if tables and len(tables) < len(files):
        other = next(file for file in files if file not in tables)
        raise UserError(
            f"split {split}: {tables[0]} is a table of all languages, {other} a text of one: "
            "give only tables, or only text files"
        )
    for file in files:
        if file.is_file() and not is_parallel_file(file):
            next(stream_lines(file), None)  # before other checks, to recognize spreadsheets
    more = split == "test" and count == 2 and len(files) > 2  # further references
    if not (tables or more or len(files) == count):
        seen = ", ".join(map(str, files)) or "nothing"
        number = "two" if count == 2 else count
        raise UserError(f"split {split} is {seen}: give {number} aligned text files or tables (.tsv or .csv)")
    for number, file in enumerate(files):
        if not (file.is_file() or (file.is_dir() and is_parallel_file(file))):
            where = "" if file.is_absolute() else f"; the current folder is {Path.cwd()}"
            raise UserError(f"{file}: no such file (split {split}{where})")
        if file in files[:number]:
            raise UserError(f"split {split} names {file} twice: give each file once")
    return files


def _check_endings(split: str, files: tuple[Path, ...], languages: tuple[str, ...]):
    """Raise `UserError` for a file whose ending names another of the languages than its own."""
    endings = [unpacked_name(file).removesuffix(".txt").rpartition(".")[2] for file in files]
    by_language = any(map(matching_code, endings, ([language] for language in languages)))
    for file, ending, language in zip(files, endings, languages, strict=False):
        named = matching_code(ending, languages) if ending else None
        # Only of two letters: other usual endings are languages, too, such as .raw and .tok.
        if not named and by_language and len(ending) == 2 and english_name(ending) != ending:
            named = ending
        if named and not matching_code(ending, [language]):
            seen = " and ".join(map(str, files[: len(languages)]))
            raise UserError(
                f"split {split} is {seen} for {', '.join(languages)}, but {file} ends in {ending!r}: "
                "give the files in the order of the languages"
            )


def _read_text(path: Path) -> Text:
    """Return the lines of a text file of one language."""
    return Text(str(path), list(plain_lines(stream_lines(path), str(path), NAME_IT)))


def stream_pairs(
    files: Sequence[Path], languages: Sequence[str], columns: Columns = (), approved: bool = False
) -> Iterator[tuple[str, str]]:
    """Yield the sentence pairs of two aligned text files or of tables, as `open_files` reads them.

    Raises:
        UserError: as for `stream_lines`; or a row without exactly two columns; or files with different
            numbers of lines.
    """
    if is_table(files[0]):
        yield from map(tuple, rows_of_tables(files, languages, columns, approved))
        return
    sides = [plain_lines(stream_lines(path), str(path), NAME_IT) for path in files]
    yield from aligned(sides, list(map(str, files)))


def is_table(path: Path) -> bool:
    """Return whether a file has all languages, by its name: `.tsv`, `.csv`, or that of a parallel file."""
    return unpacked_name(path).endswith((".tsv", ".csv")) or is_parallel_file(path)


def rows_of_tables(paths: Iterable[Path], *args) -> Iterator[list[str]]:
    """Yield the rows of several tables, one after the other; the other arguments are `table_rows`'s."""
    for path in paths:
        yield from table_rows(path, *args)


def table_rows(
    path: Path, languages: Sequence[str], columns: Columns = (), approved: bool = False
) -> Iterator[list[str]]:
    """Yield the rows of a table: the sentence of each language.

    TSV has no quotes: each tab separates columns. CSV has quotes. `columns` and `approved` are as in
    `open_files`.

    Raises:
        UserError: a row without these columns, column titles in the first line, or invalid CSV.
    """
    if is_parallel_file(path):
        yield from parallel_rows(path, languages, columns, approved)
        return
    wanted, count, titles = list(columns), len(languages), TITLES.union(map(str.lower, languages))
    named = bool(wanted) and isinstance(wanted[0], str)
    least = len(wanted) if named else max(wanted, default=count)
    rows = _numbered(path, least, exact=not wanted)
    if named:
        _, found = next(rows, (1, []))
        if missing := [name for name in wanted if name not in found]:
            raise UserError(f"{path}, line 1: no column {missing[0]!r}; it has {', '.join(found)}")
        wanted = [found.index(name) + 1 for name in wanted]
    for place, (number, row) in enumerate(rows):
        if len(row) < max(wanted) if wanted else len(row) != count:
            needed = f"at least {max(wanted)}" if wanted else f"{count}, one per language"
            how = "" if wanted else '; in a recipe, choose columns = [1, 2] or ["en", "de"]'
            raise UserError(f"{path}, line {number}: {len(row)} columns instead of {needed}{how}")
        if wanted:
            row = [row[column - 1] for column in wanted]
        if place == 0 and not named and {cell.strip().lower() for cell in row} <= titles:
            raise UserError(
                f"{path}, line 1: these are titles ({', '.join(row)}): remove the line, or in a recipe set "
                f"columns = {row}"
            )
        yield row


def _numbered(path: Path, least: int, exact: bool) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with the number of its last line."""
    if unpacked_name(path).endswith(".tsv"):
        yield from ((number, line.split("\t")) for number, line in enumerate(stream_lines(path), 1))
        return
    lines = (f"{line}\n" for line in stream_lines(path))
    if not (sample := list(itertools.islice(lines, SAMPLE))):
        return
    separator = _separator(path, sample, least, exact)
    reader = csv.reader(itertools.chain(sample, lines), delimiter=separator, strict=True)
    try:
        for row in reader:
            # Join the lines of a cell.
            yield reader.line_num, [re.sub(r"\s*\n\s*", " ", cell) for cell in row]
    except csv.Error as error:
        raise UserError(f"{path}, line {reader.line_num}: not CSV ({error})") from None


def _separator(path: Path, sample: list[str], least: int, exact: bool) -> str:
    """Return the separator that gives all rows the same number of columns, at least `least`.

    If several do and `exact`, the one that gives `least`.
    """
    found, reason = {}, None
    for separator in SEPARATORS:
        reader = csv.reader(sample, delimiter=separator)
        try:
            rows = list(reader)
        except csv.Error as error:
            reason = f"{path}, line {reader.line_num}: not CSV ({error})"
            continue
        cut = len(sample) == SAMPLE and len(rows) > 1  # the last row
        widths = {len(row) for row in (rows[:-1] if cut else rows) if row}  # `table_rows` names blank lines
        if len(widths) == 1 and (width := widths.pop()) >= least:
            found[separator] = width
    fitting = [separator for separator, width in found.items() if exact and width == least] or list(found)
    if len(fitting) != 1:
        raise UserError(
            reason
            or f"{path}: not exactly one of comma, semicolon and tab gives all rows equally many columns "
            f"({least} or more): put quotes around the sentences, or save as TSV"
        )
    return fitting[0]
