"""The parallel corpora that there are: by name, or from the user's own files.

Recipes and the command line open corpora here.
"""

import functools
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from kzoo.data.corpus import Corpus, own_file
from kzoo.data.multi30k import read_multi30k
from kzoo.data.own_splits import split_rows
from kzoo.data.tables import Columns, is_table, table_rows
from kzoo.data.text_files import Text, check_aligned, read_lines
from kzoo.errors import UserError, nearest


def open_corpus(name: str) -> Corpus:
    """Return a corpus by its name.

    `multi30k`, `wmt17_zh_en` and `tatoeba_zh_en` are read from the folder named by the environment variable
    `KZOO_DATA`, as `NAME/SPLIT.LANGUAGE.gz`. Missing files are downloaded once and kept in `KZOO_CACHE`
    (`~/.cache/kzoo`): 420 MB for `wmt17_zh_en`. `scenes` is generated.

    Args:
        name: a key of `CORPORA`.

    Raises:
        UserError: no such corpus; the message has the nearest names.

    Example:
        >>> open_corpus("multi30k").languages
        ('en', 'de', 'fr', 'cs')
    """
    if name not in CORPORA:
        raise UserError(f"unknown corpus {name!r}: {nearest(name, list(CORPORA))}")
    return CORPORA[name]()


Paths = str | Path | Sequence[str | Path]


def open_files(
    train: Paths | None = None,
    val: Paths | int | float | None = None,
    test: Paths | int | float | None = None,
    languages: Sequence[str] = ("en", "de"),
    columns: Columns = (),
) -> Corpus:
    """Return the user's own files as a corpus.

    Args:
        train: text files aligned by line, one per language in the order of `languages`, or one table (`.tsv`
            or `.csv`): UTF-8, or UTF-16 with a byte order mark, plain or packed (`.gz`, `.bz2`, `.xz`).
        val: the same for the validation split; or how many rows of `train` it takes, a number or, below 1, a
            share: `kzoo.data.own_splits` says which.
        test: likewise; of two languages, more files are further references.
        languages: the codes of the files or columns, two or more.
        columns: the columns of a table that has more: numbers from 1, or names in its first line, in the
            order of `languages`.

    Raises:
        UserError: no split at all, a file that does not exist, or files that are neither one per language nor
            a table.

    Example:
        >>> corpus = open_files(train=("train.id", "train.zh"), val="val.tsv.gz", languages=("id", "zh"))
        >>> corpus.splits
        ('train', 'val')
    """
    if isinstance(languages, str) or len(languages) < 2 or len(set(languages)) < len(languages):
        raise UserError(f"languages is {languages!r}: at least two different language codes are needed")
    languages, given = tuple(languages), {"train": train, "val": val, "test": test}
    if columns and len(columns) != len(languages):
        raise UserError(f"columns is {list(columns)!r}: give one for each of {', '.join(languages)}")
    parts = {split: part for split, part in given.items() if isinstance(part, int | float)}
    files = {
        split: _files(split, paths, len(languages))
        for split, paths in given.items()
        if paths is not None and split not in parts
    }
    if not files:
        raise UserError("no files: give at least one of train, val and test")
    if parts and "train" not in files:
        raise UserError(f"{', '.join(parts)} would be split off train, which has no files")

    def whole(split: str, language: str) -> Text:
        column, paths = languages.index(language), files[split]
        if len(paths) > 1:
            return _read_text(paths[column])
        where, lines = read_lines(paths[0])
        return Text(where, [row[column] for row in table_rows(paths[0], lines, languages, columns)])

    @functools.cache
    def rows() -> dict[str, np.ndarray]:
        sides = [whole("train", language) for language in languages]
        for side in sides[1:]:
            check_aligned(sides[0], side)
        return split_rows([side.sentences for side in sides], parts)

    def read(split: str, language: str) -> Text:
        if not parts or split not in ("train", *parts):
            return whole(split, language)
        text = whole("train", language)
        return Text(f"{text.where} ({split})", [text.sentences[row] for row in rows()[split]])

    def further(split: str) -> list[Text]:
        return [_read_text(path) for path in files.get(split, ())[len(languages) :]]

    splits = tuple(split for split in given if split in files or split in parts)
    return Corpus("files", languages, splits, "the user's own", "", read, further_references=further)


def _files(split: str, paths: Paths, count: int) -> tuple[Path, ...]:
    """Return the text files of a split, or the one table, all of which exist."""
    if isinstance(paths, str | Path):
        paths = (paths,)
    files = tuple(Path(path).expanduser() for path in paths)
    table = next(filter(is_table, files), None)
    if table and len(files) > 1:
        raise UserError(
            f"split {split}: {table} is a table, which has all languages: give it alone, or text files"
        )
    more = split == "test" and count == 2 and len(files) > 2  # further references
    if not (table or more or len(files) == count):
        seen = ", ".join(map(str, files)) or "nothing"
        number = "two" if count == 2 else count
        raise UserError(
            f"split {split} is {seen}: give {number} aligned text files or one table (.tsv or .csv)"
        )
    for number, file in enumerate(files):
        if not file.is_file():
            where = "" if file.is_absolute() else f"; the current folder is {Path.cwd()}"
            raise UserError(f"{file}: no such file (split {split}{where})")
        if file in files[:number]:
            raise UserError(f"split {split} names {file} twice: give a file for each language")
    return files


def _read_text(path: Path) -> Text:
    """Return the lines of a text file of one language."""
    text = read_lines(path)
    if text.sentences and all("\t" in line for line in text.sentences):
        raise UserError(
            f"{path}: every line has a tab, as in a table: name it .tsv and give it alone, or a column of it"
        )
    return text


def _multi30k() -> Corpus:
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
    return Corpus(
        name="multi30k",
        languages=("en", "de", "fr", "cs"),
        splits=splits,
        licence="non-commercial research and education; derived from Flickr30k captions",
        citation="Elliott et al. 2016 (en, de), Elliott et al. 2017 (fr, tests of 2017), "
        "Barrault et al. 2018 (cs, test of 2018)",
        read=_own_or("multi30k", read_multi30k),
        absent=frozenset({("test_2017_flickr", "cs"), ("test_2017_mscoco", "cs")}),
    )


def _wmt17_zh_en() -> Corpus:
    from kzoo.data.wmt17 import LANGUAGES, read_wmt17

    return Corpus(
        name="wmt17_zh_en",
        languages=LANGUAGES,
        splits=("train", "val", "test"),
        licence="research; for other uses ask the owners of its parts (statmt.org/wmt17)",
        citation="Bojar et al. 2017 (WMT 2017); selection of Broscheit et al. 2018",
        read=_own_or("wmt17_zh_en", read_wmt17),
    )


def _tatoeba_zh_en() -> Corpus:
    from kzoo.data.tatoeba import LANGUAGES, read_tatoeba

    return Corpus(
        name="tatoeba_zh_en",
        languages=LANGUAGES,
        splits=("train", "val", "test"),
        licence="CC BY 2.0 FR",
        citation="Tatoeba (tatoeba.org), by way of ManyThings.org",
        read=_own_or("tatoeba_zh_en", read_tatoeba),
    )


def _scenes() -> Corpus:
    from kzoo.scenes import LANGUAGES, scenes

    def pictures(split: str) -> np.ndarray:
        from kzoo.scenes.picture import pictures

        return pictures(split)

    def read(split: str, language: str) -> Text:
        return Text(f"scenes/{split}", [scene.sentence(language) for scene in scenes(split)])

    return Corpus(
        name="scenes",
        languages=tuple(LANGUAGES),
        splits=("train", "val", "test"),
        licence="as kzoo itself",
        citation="",
        read=read,
        read_images=pictures,
    )


def _own_or(name: str, read: Callable[[str, str], Text]) -> Callable[[str, str], Text]:
    """Return a corpus's `read`: the user's own file, or else what the given function returns."""

    def read_own(split: str, language: str) -> Text:
        own = own_file(f"{name}/{split}.{language}.gz")
        return read(split, language) if own is None else read_lines(own)

    return read_own


CORPORA: dict[str, Callable[[], Corpus]] = {
    "multi30k": _multi30k,
    "wmt17_zh_en": _wmt17_zh_en,
    "tatoeba_zh_en": _tatoeba_zh_en,
    "scenes": _scenes,
}
