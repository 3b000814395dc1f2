"""Rows of a parallel text that teach a model nothing, or wrong things: found, shown in a table, left out."""

import itertools
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from kzoo.data.kinds_of_rows import KindOfRows, lines_of
from kzoo.data.scripts import in_another_script

# Odd lengths: OpusFilter's LengthRatioFilter accepts pairs whose lengths differ by less than a factor of 3
# (https://github.com/Helsinki-NLP/OpusFilter, `opusfilter/filters.py`). Here in characters, because a
# compound may be one word for three, as any sentence in Chinese is; and relative to the whole text's ratio.
FACTOR = 3
# "OK" may be "D'accord": lengths must also differ by three standard deviations. Their variance is 6.8 per
# character (Gale and Church 1993, "A Program for Aligning Sentences in Bilingual Corpora",
# https://aclanthology.org/J93-1004).
DEVIATIONS, VARIANCE = 3, 6.8
# The share of rows whose sides may be equal, as names are. From many of them, models learn to copy
# (Khayrallah and Koehn 2018, "On the Impact of Various Types of Noise on Neural Machine Translation",
# https://aclanthology.org/W18-2709).
EQUAL = 0.01


class OddRows(NamedTuple):
    """Rows of one kind.

    Attributes:
        what: the kind, for a table.
        rows: their numbers, from 0.
        left_out: the numbers of those that cleaning leaves out.
    """

    what: str
    rows: np.ndarray
    left_out: np.ndarray


def odd_rows(sides: Sequence[Sequence[str]]) -> list[OddRows]:
    """Return the rows of a text that cleaning may leave out. Each row is of one kind, the first that fits.

    `sides` are the sentences of each language, aligned.
    """
    rows = [tuple(map(str.strip, row)) for row in zip(*sides, strict=True)]
    seen, empty, copies, equal, others = set(), [], [], [], []
    for number, row in enumerate(rows):
        if not all(row):
            empty.append(number)
        elif row in seen:
            copies.append(number)
        else:
            (equal if len(set(row)) == 1 else others).append(number)
        seen.add(row)
    numbers = [np.array(kind, int) for kind in (empty, copies, equal, others)]
    empty, copies, equal, others = numbers
    lengths = others[_odd_lengths(np.array([[*map(len, rows[row])] for row in others], float))]
    return [
        OddRows("an empty side", empty, empty),
        OddRows("a copy of an earlier row", copies, copies),
        OddRows("equal sides", equal, equal[int(EQUAL * len(rows)) :]),
        OddRows(f"a side {FACTOR} times too long", lengths, lengths),
    ]


def _odd_lengths(lengths: np.ndarray) -> np.ndarray:
    """Return which rows have odd lengths; `lengths` are those of their sides, `(rows, languages)`."""
    if not len(lengths):
        return np.zeros(0, bool)
    lengths = lengths * np.median(lengths[:, :1] / lengths, axis=0)  # as if all were in the first language
    shortest, longest = lengths.min(axis=1), lengths.max(axis=1)
    chance = DEVIATIONS * np.sqrt(VARIANCE * shortest)
    return (longest >= FACTOR * shortest) & (longest - shortest > chance)


def kept_rows(found: Sequence[OddRows], count: int) -> np.ndarray:
    """Return the numbers of those of `count` rows that cleaning keeps; `found` is what `odd_rows` returns."""
    return np.setdiff1d(np.arange(count), np.concatenate([kind.left_out for kind in found]))


def doubtful_rows(
    sides: Sequence[Sequence[str]],
    languages: Sequence[str],
    held_out: Sequence[Sequence[Sequence[str]]] = (),
) -> list[OddRows]:
    """Return further rows that deserve a look, but that cleaning keeps.

    Args:
        sides: as in `odd_rows`.
        languages: the codes of the sides.
        held_out: the sides of each held-out text.
    """
    wrong = [
        list(map(in_another_script(language), side)) for language, side in zip(languages, sides, strict=True)
    ]
    kinds = {"a sentence in another script": wrong}
    if held_out:
        texts = [set(map(str.strip, itertools.chain(*parts))) - {""} for parts in zip(*held_out, strict=True)]
        kinds["a sentence of val or test"] = [
            [sentence.strip() in text for sentence in side] for side, text in zip(sides, texts, strict=True)
        ]
    none = np.zeros(0, int)
    return [OddRows(what, np.flatnonzero(np.any(found, axis=0)), none) for what, found in kinds.items()]


def rows_table(sides: Sequence[Sequence[str]], found: Sequence[OddRows], clean: bool) -> str:
    """Return a table of odd rows: for each kind, how many and one of them. Rows are counted from 1.

    `clean`: whether those that cleaning leaves out are left out.
    """
    count, found = len(sides[0]), [kind for kind in found if len(kind.rows)]
    if not found:
        return f"Of {count:,} training rows, none is odd"
    kinds = []
    for kind in found:
        row = (kind.left_out if len(kind.left_out) else kind.rows)[0]
        kinds.append(KindOfRows(kind.what, len(kind.rows), row + 1, [side[row] for side in sides]))
    lines = [f"Of {count:,} training rows:", *lines_of(kinds)]
    if left_out := sum(len(kind.left_out) for kind in found):
        what = "are left out (clean = false keeps them)" if clean else "would be left out by clean = true"
        lines.append(f"{left_out:10,} {what}")
    return "\n".join(lines)
