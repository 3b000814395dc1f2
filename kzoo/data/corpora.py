"""Parallel corpora: aligned sentences of a split, by the corpus's name or from the user's own files.

Recipes and the command line open corpora here; tokenizers and batches use their sentences.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from kzoo.data.checksums import MULTI30K
from kzoo.data.download import download
from kzoo.data.image_features import FeatureFile, open_features
from kzoo.data.text_files import Text, read_lines
from kzoo.errors import UserError, nearest
from kzoo.files import cache_folder

MULTI30K_COMMIT = "c40b37b23d6387214f8ab37335b5a8672b9745f2"  # the last to change one of the files
MULTI30K_ADDRESS = f"https://raw.githubusercontent.com/multi30k/dataset/{MULTI30K_COMMIT}/data/task1/raw"


@dataclass(frozen=True)
class Corpus:
    """Sentences in several languages, aligned by line, in named splits.

    Nothing is read, generated or downloaded before sentences are requested.

    Args:
        name: the corpus's name, as in `open_corpus(name)`; "files" for the user's own files.
        languages: the codes of its languages.
        splits: the names of its splits.
        licence: terms of use, one line.
        citation: whom to cite, one line; empty if no citation is requested.
        read: `read(split, language)` returns the `Text`; called with existing splits and languages only.
        absent: the (split, language) combinations that do not exist.
        read_images: `read_images(split)` returns one image per line; `None`: there are none.
    """

    name: str
    languages: tuple[str, ...]
    splits: tuple[str, ...]
    licence: str
    citation: str
    read: Callable[[str, str], Text] = field(repr=False)
    absent: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    read_images: Callable[[str], np.ndarray] | None = field(default=None, repr=False)

    def sentences(self, split: str, language: str) -> list[str]:
        """Return the sentences of one language of one split, in file order, empty ones included.

        Args:
            split: one of `splits`.
            language: one of `languages_in(split)`.

        Raises:
            UserError: no such split or language; a file that is missing, broken, empty or not UTF-8.

        Example:
            >>> open_corpus("multi30k").sentences("test_2016_flickr", "en")[0]
            'A man in an orange hat starring at something.'
        """
        self._check(split, language)
        return self._text(split, language).sentences

    def pairs(self, split: str, source: str, target: str) -> tuple[list[str], list[str]]:
        """Return the source and the target sentences of a split, aligned line by line.

        Args:
            split: one of `splits`.
            source: the source language.
            target: the target language.

        Raises:
            UserError: as for `sentences`; or the two files have different numbers of lines.

        Example:
            >>> english, german = open_corpus("multi30k").pairs("val", "en", "de")
            >>> len(english), len(german)
            (1014, 1014)
        """
        self._check(split, source, target)  # check both before the first is read or downloaded
        left, right = self._text(split, source), self._text(split, target)
        if len(left.sentences) != len(right.sentences):
            raise UserError(
                f"{left.where} has {len(left.sentences):,} lines but {right.where} has "
                f"{len(right.sentences):,}: line by line they must be translations of each other"
            )
        return left.sentences, right.sentences

    def images(self, split: str) -> "np.ndarray | FeatureFile":
        """Return the images of a split `(N, …)`, in the order of its sentences.

        Raises:
            UserError: no such split, or a corpus without images.
        """
        self.languages_in(split)
        if self.read_images is None:
            raise UserError(
                f"corpus {self.name} has no images: give a folder of features with --images FOLDER, "
                "in a recipe images=FOLDER; or another corpus"
            )
        return self.read_images(split)

    def with_images(self, folder: str | os.PathLike) -> "Corpus":
        """Return the corpus with the features `SPLIT.npy` of a folder as its images.

        `SPLIT.txt` in that folder, or in the corpus's folder under KZOO_DATA, names the picture of each line;
        anything after a `#` is ignored. Without it the rows must be in the order of the lines.

        Args:
            folder: a folder with the files that `kzoo features extract` writes.
        """

        def read(split: str) -> FeatureFile:
            beside = Path(folder) / f"{split}.txt"
            listed = beside if beside.is_file() else _own_file(f"{self.name}/{split}.txt")
            names = None if listed is None else picture_names(listed)
            return open_features(Path(folder) / f"{split}.npy", names)

        return replace(self, read_images=read)

    def languages_in(self, split: str) -> tuple[str, ...]:
        """Return the languages in which a split exists; raises `UserError` if there is no such split."""
        if split not in self.splits:
            raise UserError(f"corpus {self.name} has no split {split!r}: {nearest(split, list(self.splits))}")
        return tuple(language for language in self.languages if (split, language) not in self.absent)

    def _check(self, split: str, *languages: str) -> None:
        here = self.languages_in(split)
        for language in languages:
            if language not in self.languages:
                near = nearest(language, list(self.languages))
                raise UserError(f"corpus {self.name} has no language {language!r}: {near}")
            if language not in here:
                others = ", ".join(other for other in self.splits if (other, language) not in self.absent)
                raise UserError(
                    f"corpus {self.name} has no {language} in split {split}: it has {', '.join(here)} there, "
                    f"and {language} in {others}"
                )

    def _text(self, split: str, language: str) -> Text:
        text = self.read(split, language)
        if not any(sentence.strip() for sentence in text.sentences):
            raise UserError(f"{text.where} is empty: the {language} side of split {split} has no sentence")
        return text


def open_corpus(name: str) -> Corpus:
    """Return a corpus by its name.

    `multi30k`, `wmt17_zh_en` and `tatoeba_zh_en` are read from the folder named by the environment variable
    `KZOO_DATA`, as `NAME/SPLIT.LANGUAGE.gz`. Missing files of the first two are downloaded once and kept in
    `KZOO_CACHE` (`~/.cache/kzoo`): 420 MB for `wmt17_zh_en`. `scenes` is generated.

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
    val: Paths | None = None,
    test: Paths | None = None,
    languages: Sequence[str] = ("en", "de"),
) -> Corpus:
    """Return the user's own files as a corpus.

    Args:
        train: text files aligned by line, one per language in the order of `languages`, or one `.tsv` file
            with as many columns; UTF-8, each optionally gzipped (`.gz`).
        val: the same for the validation split.
        test: the same for the test split.
        languages: the codes of the files or columns, two or more.

    Raises:
        UserError: no split at all, a file that does not exist, or files that are neither one per language nor
            a `.tsv`.

    Example:
        >>> corpus = open_files(train=("train.id", "train.zh"), val="val.tsv.gz", languages=("id", "zh"))
        >>> corpus.splits
        ('train', 'val')
    """
    if isinstance(languages, str) or len(languages) < 2 or len(set(languages)) < len(languages):
        raise UserError(f"languages is {languages!r}: at least two different language codes are needed")
    given = {"train": train, "val": val, "test": test}
    count = len(languages)
    files = {split: _files(split, paths, count) for split, paths in given.items() if paths is not None}
    if not files:
        raise UserError("no files: give at least one of train, val and test")

    def read(split: str, language: str) -> Text:
        column = tuple(languages).index(language)
        paths = files[split]
        if len(paths) == 1:
            return _read_column(paths[0], column, count)
        return read_lines(paths[column])

    return Corpus("files", tuple(languages), tuple(files), "the user's own", "", read)


def _files(split: str, paths: Paths, count: int) -> tuple[Path, ...]:
    """Return the text files of a split, or the one TSV file, all of which exist."""
    if isinstance(paths, str | Path):
        paths = (paths,)
    files = tuple(Path(path).expanduser() for path in paths)
    if len(files) != count and not (len(files) == 1 and files[0].name.endswith((".tsv", ".tsv.gz"))):
        seen = ", ".join(map(str, files)) or "nothing"
        number = "two" if count == 2 else count
        raise UserError(
            f"split {split} is {seen}: give {number} aligned text files or one .tsv (or .tsv.gz) file"
        )
    for file in files:
        if not file.is_file():
            raise UserError(f"{file}: no such file (split {split})")
    return files


def _read_column(path: Path, column: int, count: int) -> Text:
    rows = [line.split("\t") for line in read_lines(path).sentences]
    for number, row in enumerate(rows, 1):
        if len(row) != count:
            raise UserError(
                f"{path}, line {number}: {len(row)} columns instead of {count} "
                "(one per language, separated by tabs)"
            )
    return Text(str(path), [row[column] for row in rows])


def _multi30k() -> Corpus:
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")

    def read(split: str, language: str) -> Text:
        name = f"{split}.{language}"
        own = _own_file(f"multi30k/{name}.gz")
        if own is None:
            kept = cache_folder() / "multi30k" / name
            return read_lines(download(f"{MULTI30K_ADDRESS}/{name}.gz", MULTI30K[name], kept))
        return read_lines(own)

    return Corpus(
        name="multi30k",
        languages=("en", "de", "fr", "cs"),
        splits=splits,
        licence="non-commercial research and education; derived from Flickr30k captions",
        citation="Elliott et al. 2016 (en, de), Elliott et al. 2017 (fr, tests of 2017), "
        "Barrault et al. 2018 (cs, test of 2018)",
        read=read,
        absent=frozenset({("test_2017_flickr", "cs"), ("test_2017_mscoco", "cs")}),
    )


def _wmt17_zh_en() -> Corpus:
    from kzoo.data.wmt17 import LANGUAGES, read_wmt17

    def read(split: str, language: str) -> Text:
        own = _own_file(f"wmt17_zh_en/{split}.{language}.gz")
        return read_wmt17(split, language) if own is None else read_lines(own)

    return Corpus(
        name="wmt17_zh_en",
        languages=LANGUAGES,
        splits=("train", "val", "test"),
        licence="research; for other uses ask the owners of its parts (statmt.org/wmt17)",
        citation="Bojar et al. 2017 (WMT 2017); selection of Broscheit et al. 2018",
        read=read,
    )


def _tatoeba_zh_en() -> Corpus:
    def read(split: str, language: str) -> Text:
        own = _own_file(f"tatoeba_zh_en/{split}.{language}.gz")
        if own is None:
            raise UserError(
                f"tatoeba_zh_en has no download: set KZOO_DATA (now {os.environ.get('KZOO_DATA', '')!r}) to "
                f"a folder that holds tatoeba_zh_en/{split}.{language}.gz"
            )
        return read_lines(own)

    return Corpus(
        name="tatoeba_zh_en",
        languages=("zh", "en"),
        splits=("train", "val", "test"),
        licence="CC BY 2.0 FR",
        citation="Tatoeba (tatoeba.org), by way of ManyThings.org",
        read=read,
    )


def _scenes() -> Corpus:
    from kzoo.data.scenes import LANGUAGES, scenes

    def pictures(split: str) -> np.ndarray:
        from kzoo.data.scenes.picture import pictures

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


CORPORA: dict[str, Callable[[], Corpus]] = {
    "multi30k": _multi30k,
    "wmt17_zh_en": _wmt17_zh_en,
    "tatoeba_zh_en": _tatoeba_zh_en,
    "scenes": _scenes,
}


def picture_names(path: Path) -> list[str]:
    """Return the file names of pictures, one per line; Multi30k writes `NAME#CAPTION` in one of its lists."""
    return [line.partition("#")[0] for line in read_lines(path).sentences]


def _own_file(name: str) -> Path | None:
    """Return the file of this name under the folder KZOO_DATA, if there is one."""
    folder = os.environ.get("KZOO_DATA")
    if not folder:
        return None
    if not Path(folder).expanduser().is_dir():
        raise UserError(f"KZOO_DATA is {folder!r}: no such folder")
    file = Path(folder).expanduser() / name
    return file if file.exists() else None
