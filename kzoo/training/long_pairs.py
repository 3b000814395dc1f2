"""Sentence pairs that are too long to train on, left out: a recipe's `too_long = "drop"`."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from kzoo.data import FeatureFile
from kzoo.errors import UserError


def kept_rows(split: str, sides: Sequence[list[list[int]]], limit: int) -> np.ndarray:
    """Return the numbers of the rows whose sentences all fit, and print how many do not.

    Args:
        split: its name.
        sides: the token ids of each side's sentences, without start and end.
        limit: int. Maximum length of a sentence, with its start or end symbol.

    Raises:
        UserError: none fits.
    """
    longest = np.max([list(map(len, side)) for side in sides], axis=0) + 1
    kept = np.flatnonzero(longest <= limit)
    if not len(kept):
        raise UserError(f"split {split}: each sentence is longer than {limit} subwords: raise max_length")
    if len(kept) < len(longest):
        print_dropped(split, len(longest) - len(kept), len(longest), limit)
    return kept


def print_dropped(split: str, count: int, total: int, limit: int):
    """Print how many pairs were left out."""
    print(f"split {split}: {count:,} of {total:,} pairs left out, with more than {limit} subwords")


def rows_of(images: np.ndarray | FeatureFile | None, kept: np.ndarray) -> np.ndarray | FeatureFile | None:
    """Return the images of the rows that are kept."""
    if isinstance(images, FeatureFile):
        return replace(images, order=images.order[kept])
    return None if images is None else images[kept]
