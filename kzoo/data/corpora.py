"""Parallel corpora by name: sentences in several languages, aligned by line, some with pictures.

`kzoo.data.own_files` opens the user's own files.
"""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path

import numpy as np

from kzoo.data.cleaning import OddRows
from kzoo.data.downloaded_corpora import CHINESE_ENGLISH, read_multi30k, read_tatoeba, read_wmt17
from kzoo.data.features import FeatureFile, open_features
from kzoo.data.text_files import Text, check_aligned, read_lines
from kzoo.errors import UserError, nearest
from kzoo.scenes import LANGUAGES, scenes
from kzoo.text.languages import matching_code


@dataclass(frozen=True)
class Corpus:
    """Sentences in several languages, aligned by line, in named splits.

    Sentences are read, generated or downloaded when they are first requested.

    Args:
        name: the corpus's name, as in `open_corpus(name)`; "files" for the user's own files.
        languages: the codes of its languages.
        splits: the names of its splits.
        licence: terms of use, one line.
        citation: whom to cite, one line; empty if no citation is requested.
        read: `read(split, language)` returns the `Text`; called with existing splits and languages only.
        absent: the (split, language) combinations that do not exist.
        read_images: `read_images(split)` returns one image per line; `None`: no images.
        further_references: `further_references(split)` returns further texts in the last language; `None`:
            no further references.
        whole: for a corpus without some rows of `train`, the one with all rows; `None`: this has them.
        odd_rows: `odd_rows()` returns the rows of `train` that cleaning may leave out; `None`: not known.
        monolingual_target: `monolingual_target()` returns further sentences in the target language; `None`:
            no further sentences.
    """

    name: str
    languages: tuple[str, ...]
    splits: tuple[str, ...]
    licence: str
    citation: str
    read: Callable[[str, str], Text] = field(repr=False)
    absent: frozenset[tuple[str, str]] = field(default=frozenset(), repr=False)
    read_images: Callable[[str], np.ndarray | FeatureFile] | None = field(default=None, repr=False)
    further_references: Callable[[str], list[Text]] | None = field(default=None, repr=False)
    whole: "Corpus | None" = field(default=None, repr=False)
    odd_rows: Callable[[], list[OddRows]] | None = field(default=None, repr=False)
    monolingual_target: Callable[[], list[str]] | None = field(default=None, repr=False)

    def sentences(self, split: str, language: str) -> list[str]:
        """Return the sentences of one language of one split, in file order, empty ones included.

        Args:
            split: one of `splits`.
            language: one of `languages_in(split)`.

        Raises:
            UserError: no such split or language; a file that is missing, broken, empty or not Unicode.

        Example:
            >>> open_corpus("scenes").sentences("test", "en")[0]
            'He is walking with a goat in the field.'
        """
        self.check(split, language)
        return self._text(split, language).sentences

    def pairs(self, split: str, source: str, target: str) -> tuple[list[str], list[str]]:
        """Return the source and the target sentences of a split, aligned line by line.

        Args:
            split: one of `splits`.
            source: the source language.
            target: the target language.

        Raises:
            UserError: as for `sentences`; or the sides have different numbers of lines.

        Example:
            >>> english, german = open_corpus("scenes").pairs("val", "en", "de")
            >>> len(english), len(german)
            (1000, 1000)
        """
        return tuple(self.sides(split, (source, target)))

    def sides(self, split: str, languages: Sequence[str]) -> list[list[str]]:
        """Return the sentences of each language of a split, aligned line by line; raises as `pairs`."""
        self.check(split, *languages)  # all, before the first is read or downloaded
        texts = [self._text(split, language) for language in languages]
        for text in texts[1:]:
            check_aligned(texts[0], text)
        return [text.sentences for text in texts]

    def more_references(self, split: str, language: str) -> list[list[str]]:
        """Return further references in a language, in addition to its sentences; most corpora have none.

        Raises:
            UserError: as for `sentences`; or different numbers of lines.
        """
        if self.further_references is None or language != self.languages[-1]:
            return []
        texts = self.further_references(split)
        for text in texts:
            check_aligned(self._text(split, language), text)
        return [text.sentences for text in texts]

    def images(self, split: str) -> np.ndarray | FeatureFile:
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
        anything after a `#` is ignored. Without it, the rows must be in the order of the lines.

        Args:
            folder: folder with files written by `kzoo features extract`.
        """
        features = Path(os.path.expanduser(folder))

        @cache
        def read(split: str) -> FeatureFile:
            in_folder = features / f"{split}.txt"
            listed = in_folder if in_folder.is_file() else own_file(f"{self.name}/{split}.txt")
            names = None if listed is None else picture_names(listed)
            return open_features(features / f"{split}.npy", names)

        return replace(self, read_images=read)

    def renamed(self, *codes: str) -> "Corpus":
        """Return the corpus with other codes for its languages, such as `deu` for `de`.

        A code that means none of its languages, or several, changes nothing.

        Example:
            >>> open_corpus("scenes").renamed("eng", "spa").languages
            ('eng', 'de', 'fr', 'cs', 'id', 'zh')
        """
        own = {code: found for code in codes if (found := matching_code(code, self.languages))}
        new = {language: code for code, language in own.items()}
        return replace(
            self,
            languages=tuple(new.get(language, language) for language in self.languages),
            read=lambda split, language: self.read(split, own.get(language, language)),
            absent=frozenset((split, new.get(language, language)) for split, language in self.absent),
        )

    def languages_in(self, split: str) -> tuple[str, ...]:
        """Return the languages of a split; raise `UserError` if there is no such split."""
        if split not in self.splits:
            raise UserError(f"corpus {self.name} has no split {split!r}: {nearest(split, list(self.splits))}")
        return tuple(language for language in self.languages if (split, language) not in self.absent)

    def check(self, split: str, *languages: str):
        """Raise `UserError` if there is no such split, or it lacks one of the languages."""
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


def picture_names(path: Path) -> list[str]:
    """Return the pictures' names in a file, one per line; a caption may follow a `#`, as in Multi30k."""
    names = [line.partition("#")[0].rstrip() for line in read_lines(path).sentences]
    if "" in names:
        raise UserError(f"{path}, line {names.index('') + 1}: names no picture")
    return names


def own_file(name: str) -> Path | None:
    """Return the file of this name in the folder KZOO_DATA; `None` if there is none."""
    folder = os.environ.get("KZOO_DATA")
    if not folder:
        return None
    if not Path(os.path.expanduser(folder)).is_dir():
        raise UserError(f"KZOO_DATA is {folder!r}: no such folder")
    file = Path(os.path.expanduser(folder)) / name
    return file if file.exists() else None


def open_corpus(name: str) -> Corpus:
    """Return a corpus by its name. It keeps the sentences that it has read.

    `multi30k`, `wmt17_zh_en` and `tatoeba_zh_en` are read from the folder named by the environment variable
    `KZOO_DATA`, as `NAME/SPLIT.LANGUAGE.gz`. Missing files are downloaded once and kept in `KZOO_CACHE`
    (`~/.cache/kzoo`): 420 MB for `wmt17_zh_en`, whose val and test sacreBLEU keeps in
    `~/.sacrebleu`. `scenes` is generated.

    Args:
        name: a key of `CORPORA`.

    Raises:
        UserError: no such corpus.

    Example:
        >>> open_corpus("multi30k").languages
        ('en', 'de', 'fr', 'cs')
    """
    if name not in CORPORA:
        raise UserError(f"unknown corpus {name!r}: {nearest(name, list(CORPORA))}")
    return replace(CORPORA[name], read=cache(CORPORA[name].read))


def _own_or(name: str, read: Callable[[str, str], Text], split: str, language: str) -> Text:
    """Return the text in the user's own file of a corpus if it exists, else call the given function."""
    own = own_file(f"{name}/{split}.{language}.gz")
    return read(split, language) if own is None else read_lines(own)


def _scenes(split: str, language: str) -> Text:
    return Text(f"scenes/{split}", [scene.sentence(language) for scene in scenes(split)])


def _scenes_pictures(split: str) -> np.ndarray:
    from kzoo.scenes.picture import pictures

    return pictures(split)


_ALL = (
    Corpus(
        name="multi30k",
        languages=("en", "de", "fr", "cs"),
        splits=(
            "train",
            "val",
            "test_2016_flickr",
            "test_2017_flickr",
            "test_2017_mscoco",
            "test_2018_flickr",
        ),
        licence="non-commercial research and education; derived from Flickr30k captions",
        citation="Elliott et al. 2016 (en, de), Elliott et al. 2017 (fr, tests of 2017), "
        "Barrault et al. 2018 (cs, test of 2018)",
        read=partial(_own_or, "multi30k", read_multi30k),
        absent=frozenset({("test_2017_flickr", "cs"), ("test_2017_mscoco", "cs")}),
    ),
    Corpus(
        name="wmt17_zh_en",
        languages=CHINESE_ENGLISH,
        splits=("train", "val", "test"),
        licence="research; for other uses ask the owners of its parts (statmt.org/wmt17)",
        citation="Bojar et al. 2017 (WMT 2017); selection of Broscheit et al. 2018",
        read=partial(_own_or, "wmt17_zh_en", read_wmt17),
    ),
    Corpus(
        name="tatoeba_zh_en",
        languages=CHINESE_ENGLISH,
        splits=("train", "val", "test"),
        licence="CC BY 2.0 FR",
        citation="Tatoeba (tatoeba.org), by way of ManyThings.org",
        read=partial(_own_or, "tatoeba_zh_en", read_tatoeba),
    ),
    Corpus(
        name="scenes",
        languages=tuple(LANGUAGES),
        splits=("train", "val", "test"),
        licence="Apache 2.0, as kzoo",
        citation="",
        read=_scenes,
        read_images=_scenes_pictures,
    ),
)
CORPORA = {corpus.name: corpus for corpus in _ALL}
