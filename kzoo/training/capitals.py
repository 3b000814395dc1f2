"""Rows in capitals and in title case, which teach a model to translate them: the recipe's key `capitals`."""

import random
from collections.abc import Iterable, Iterator, Sequence

from kzoo.text.languages import upper_case
from kzoo.text.reading import has_case, title_case

LONGEST = 100  # characters: headings are short, and few models cannot read that many


def with_capitals(
    sides: Sequence[list[str]], languages: Sequence[str], share: float, seed: int, several: bool = False
) -> list[list[str]]:
    """Return the sides of a training text, with the rows of `rows_in_capitals` at the end."""
    added = []
    if share:
        added = rows_in_capitals(zip(*sides, strict=True), languages, share, seed, several)
    columns = list(zip(*added, strict=True)) or [()] * len(sides)
    return [[*side, *more] for side, more in zip(sides, columns, strict=True)]


def rows_in_capitals(
    rows: Iterable[Sequence[str]],
    languages: Sequence[str],
    share: float,
    seed: int,
    several: bool = False,
    keep: bool = False,
) -> Iterator[tuple[str, ...]]:
    """Yield a share of the rows in capitals, and again in title case.

    Long rows are left out, and those with a source in a script without case.

    Args:
        rows: the training text, a text for each language.
        languages: the languages' codes.
        share: float. At least 0 and less than 1.
        seed: int. Chooses the rows.
        several: bool. Whether each language is a source; `False`: the first alone.
        keep: bool. Whether to yield all rows, too: each before it comes in capitals.
    """
    draw = random.Random(seed)
    for row in rows:
        if keep:
            yield row
        sources = row if several else row[:1]
        if draw.random() < share and max(map(len, row)) <= LONGEST and all(map(has_case, sources)):
            for write in upper_case, title_case:
                yield tuple(write(text, code) for text, code in zip(row, languages, strict=True))
