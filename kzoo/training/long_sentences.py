"""Sentences that are longer than the model reads: cut, left out with their translations, or an error."""

import dataclasses
from collections.abc import Sequence

import numpy as np

from kzoo.data import Corpus, FeatureFile
from kzoo.data.batch_shapes import check_longest
from kzoo.errors import UserError
from kzoo.text.reading import Reading
from kzoo.training.recipe import Recipe


def cut_or_kept(
    recipe: Recipe,
    corpus: Corpus,
    split: str,
    languages: Sequence[str],
    texts: Sequence[list[str]],
    sides: Sequence[list[list[int]]],
    limit: int,
) -> tuple[Sequence[list[list[int]]], np.ndarray | None]:
    """Cut or drop the sentences of aligned texts that are too long, as the recipe says.

    `sides` are the token ids of the `texts`; the other arguments and the errors are as in `kept_rows`.

    Returns:
        The token ids of each text, and the rows that are kept; `None` for all rows.
    """
    if recipe.truncate:
        return [[tokens[: limit - 1] for tokens in side] for side in sides], None
    kept = kept_rows(recipe, corpus, split, languages, texts, [list(map(len, side)) for side in sides], limit)
    return [rows_of(side, kept) for side in sides], kept


def kept_rows(
    recipe: Recipe,
    corpus: Corpus,
    split: str,
    languages: Sequence[str],
    texts: Sequence[list[str]],
    counts: Sequence[list[int]],
    limit: int,
) -> np.ndarray | None:
    """Return the rows of aligned texts that the recipe does not drop as too long; `None` for all rows.

    `counts` are the numbers of tokens of the `texts`; `limit` is the maximum length of a sentence, with
    its start or end symbol.

    Raises:
        UserError: a sentence is too long, and the recipe neither cuts nor drops it; or all are too long.
    """
    if recipe.truncate:
        return None
    lengths = np.array(counts) + 1  # (languages, rows)
    longest = lengths.max(axis=0)
    if recipe.too_long == "error" and longest.max() > limit:
        read = corpus.read(split, languages[0])
        given = longest[: len(read.sentences)]  # without those in capitals, which may be left out
        files = dict.fromkeys(corpus.read(split, language).where for language in languages)
        pair = "sentence" if len(texts) == 1 else "sentence pair"
        row = given.argmax()
        begins = texts[lengths[:, row].argmax()][row][:40]
        # The rows' numbers in the file, if not all are read.
        check_longest(given, limit, f"split {split} ({', '.join(files)}): {begins!r}…, {pair}", read.rows)
    kept = np.flatnonzero(longest <= limit)
    if len(kept) == len(longest):
        return None
    if not len(kept):
        raise UserError(
            f"split {split}: all sentences are longer than {limit} tokens: raise model.max_length or tokens"
        )
    print_dropped(split, len(longest) - len(kept), len(longest), limit)
    return kept


def counts_of(readings: Sequence[Reading]) -> list[int]:
    """Return the number of tokens of each sentence, with those that are cut."""
    return [len(reading.tokens) + reading.cut for reading in readings]


def print_dropped(split: str, count: int, total: int, limit: int):
    """Print how many pairs were dropped because they are too long."""
    print(f"split {split}: {count:,} of {total:,} pairs left out: longer than {limit} tokens")


def rows_of(rows, kept: np.ndarray | None):
    """Return the kept rows of a list, an array or a feature file; if `kept` is `None`, all rows."""
    if rows is None or kept is None:
        return rows
    if isinstance(rows, FeatureFile):
        return dataclasses.replace(rows, order=rows.order[kept])
    return [rows[row] for row in kept] if isinstance(rows, list) else rows[kept]
