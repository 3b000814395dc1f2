"""Splits one aligned text into training, validation and test set."""

from collections.abc import Mapping, Sequence

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kzoo.errors import UserError

SEED = 1  # not a recipe's: runs with different seeds are compared on the same sentences


def split_rows(sides: Sequence[Sequence[str]], parts: Mapping[str, int | float]) -> dict[str, np.ndarray]:
    """Return the numbers of the rows of each split: no sentence of any side stands in two splits.

    Rows that share a sentence, also by way of others, stay together. In an order that depends on the text
    alone, such groups fill the held-out splits as far as they fit; all others are `train`.

    Args:
        sides: for each language its sentences, aligned.
        parts: for each held-out split, the number of its rows, or their share if below 1.

    Raises:
        UserError: rows hang together so that a split cannot be filled, or none would be left to train on.
    """
    count = len(sides[0])
    group, groups = _groups(sides)
    sizes, left = np.bincount(group, minlength=groups), np.zeros(groups, int)
    order = np.random.default_rng(SEED).permutation(groups)
    names = ["train", *parts]
    for number, (name, part) in enumerate(parts.items(), 1):
        wanted = part if part >= 1 else round(part * count)
        room = wanted
        for one in order:
            if not left[one] and sizes[one] <= room:
                left[one], room = number, room - sizes[one]
            if not room:
                break
        if room or not (left == 0).any():
            raise UserError(
                f"{name}: {wanted:,} of {count:,} rows cannot be split off, but {wanted - room:,} can: "
                "rows that share a sentence stay together: use a smaller number, or give files"
            )
    return {name: np.flatnonzero(left[group] == number) for number, name in enumerate(names)}


def _groups(sides: Sequence[Sequence[str]]) -> tuple[np.ndarray, int]:
    """Return the number of each row's group, and the number of groups; empty sentences hold none together."""
    count, ends, offset = len(sides[0]), [], len(sides[0])
    for side in sides:
        numbers = {}
        texts = (text.strip() or row for row, text in enumerate(side))
        ends.append(np.array([numbers.setdefault(text, len(numbers)) for text in texts]) + offset)
        offset += len(numbers)
    rows, nodes = np.tile(np.arange(count), len(sides)), np.concatenate(ends)
    links = coo_array((np.ones(len(rows), bool), (rows, nodes)), shape=(offset, offset))
    _, found = connected_components(links, directed=False)
    distinct, group = np.unique(found[:count], return_inverse=True)
    return group, len(distinct)
