"""Which rows of the user's own text are trained on: what cleaning leaves out, what other splits hold out."""

import functools
import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from kzoo.data.cleaning import kept_rows
from kzoo.data.corpora import Corpus
from kzoo.data.downloaded_corpora import LARGEST
from kzoo.data.text_files import Text, check_aligned
from kzoo.errors import UserError

SPLITS = ("train", "val", "test")
DIGEST = "<u8"  # type of a text's number


def selected(whole: Corpus, parts: Mapping[str, int | float], clean: bool = False) -> Corpus:
    """Return the user's own files with parts of `train` held out, and without the rows that cleaning finds.

    Args:
        whole: the files as `open_files` returns them, with all rows.
        parts: the splits to hold out, as its `val` and `test`.
        clean: as in `open_files`, which names the errors.
    """
    if not (parts or clean):
        return whole
    if parts and "train" not in whole.splits:
        raise UserError(f"{', '.join(parts)} cannot be split off train, which has no files")

    @functools.cache
    def rows() -> dict[str, np.ndarray]:
        texts = [whole.read("train", language) for language in whole.languages]
        for text in texts[1:]:
            check_aligned(texts[0], text)
        sides, kept = [text.sentences for text in texts], np.arange(len(texts[0].sentences))
        if clean:
            kept = kept_rows(whole.odd_rows(), len(kept))
            if len(sides[0]) and not len(kept):
                where = " and ".join(dict.fromkeys(text.where for text in texts))
                raise UserError(
                    f"{where}: no row is worth training on: they are empty, equal or of odd lengths in the "
                    "other language; check the files, or set clean = false"
                )
            sides = [[side[row] for row in kept] for side in sides]
        if not parts:
            return {"train": kept}
        return {split: kept[numbers] for split, numbers in split_rows(sides, parts).items()}

    @functools.cache
    def read(split: str, language: str) -> Text:
        if split not in ("train", *parts):
            return whole.read(split, language)
        text, chosen = whole.read("train", language), rows()[split]
        where = f"{text.where} ({split})" if parts else text.where
        return Text(where, [text.sentences[row] for row in chosen], chosen)

    splits = tuple(split for split in SPLITS if split in whole.splits or split in parts)
    return replace(whole, splits=splits, read=read, whole=whole)


def split_rows(sides: Sequence[Sequence[str]], parts: Mapping[str, int | float]) -> dict[str, np.ndarray]:
    """Return the numbers of the rows of each split: no sentence of any side is in two splits.

    Rows that share a sentence, directly or through other rows, form a group, which stays in one split. Groups
    of up to `LARGEST` rows have places in an order that depends on their sentences but not on their sizes.
    They fill the held-out splits as far as they fit, `val` from the start and others from the end; the rest
    is `train`. So adding a few rows, or resizing another split, hardly changes a split's rows.

    Args:
        sides: each language's sentences, aligned.
        parts: for each held-out split, the number of its rows or, below 1, their share.

    Raises:
        UserError: too few rows are in groups that can be held out, or no row is left to train on.
    """
    count = len(sides[0])
    group, groups = _groups(sides)
    sizes, split_of = np.bincount(group, minlength=groups), np.zeros(groups, int)  # 0: train
    order = np.argsort(_places(sides, group, groups), kind="stable")
    order = order[sizes[order] <= LARGEST]
    names = ["train", *parts]
    for number, (name, part) in enumerate(parts.items(), 1):
        if not (0 < part < 1 or part >= 1 and part % 1 == 0):
            raise UserError(f"{name} is {part}: give a number of rows or, below 1, their share")
        wanted = part if part >= 1 else round(part * count)
        if wanted < 1:
            raise UserError(f"{name}: a share of {part} of {count:,} rows is none: use a greater one")
        short = wanted
        for candidate in order if name == "val" else order[::-1]:
            if not split_of[candidate] and sizes[candidate] <= short:
                split_of[candidate], short = number, short - sizes[candidate]
            if not short:
                break
        if split_of.all():
            raise UserError(
                f"{name}: holding out {wanted:,} of {count:,} rows leaves none to train on: "
                f"use a smaller number, or a share such as {name} = 0.1, or give files"
            )
        if short:
            raise UserError(
                f"{name}: {wanted:,} of {count:,} rows cannot be held out, at most {wanted - short:,} can: "
                f"rows that share a sentence stay together, in train if they are more than {LARGEST}; "
                "use a smaller number, remove repeated sentences, or give files"
            )
    return {name: np.flatnonzero(split_of[group] == number) for number, name in enumerate(names)}


def _groups(sides: Sequence[Sequence[str]]) -> tuple[np.ndarray, int]:
    """Return the number of each row's group, and the number of groups. Empty sentences form no groups."""
    from scipy.sparse import coo_array  # imported here, because it takes half a second
    from scipy.sparse.csgraph import connected_components

    count, firsts = len(sides[0]), []  # for each side, the first row with each row's sentence
    for side in sides:
        seen = {}
        firsts += [seen.setdefault(text.strip() or row, row) for row, text in enumerate(side)]
    rows = np.tile(np.arange(count), len(sides))
    links = coo_array((np.ones(len(rows), bool), (rows, firsts)), shape=(count, count))
    groups, group = connected_components(links, directed=False)
    return group, groups


def _places(sides: Sequence[Sequence[str]], group: np.ndarray, groups: int) -> np.ndarray:
    """Return a number for each group that depends on its sentences alone. Empty sentences count as different.

    It is a digest of the least of their digests. The least hardly changes when sentences are added, but the
    more there are, the lower it is: large groups would come first.
    """
    least = np.full(groups, np.iinfo("uint64").max)
    for side in sides:
        texts = (text.strip() or str(row) for row, text in enumerate(side))
        np.minimum.at(least, group, digests(map(str.encode, texts)))
    return digests(number.to_bytes(8) for number in least.tolist())


def digests(texts: Iterable[bytes]) -> np.ndarray:
    """Return a number for each text: the first eight bytes of its SHA-256."""
    return np.frombuffer(b"".join(hashlib.sha256(text).digest()[:8] for text in texts), DIGEST)
