"""A table of kinds of rows: how many there are of each, and one of them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from kzoo.errors import printable

LONGEST = 40  # characters of a sentence that are shown


class KindOfRows(NamedTuple):
    """Rows of one kind.

    Attributes:
        what: the kind.
        count: their number.
        row: the number of one of them, from 1.
        texts: of that one.
    """

    what: str
    count: int
    row: int
    texts: Sequence[str]


def lines_of(kinds: Iterable[KindOfRows]) -> list[str]:
    """Return a line for each kind."""
    kinds = list(kinds)
    width = max(len(kind.what) for kind in kinds)
    lines = []
    for kind in kinds:
        shown = " | ".join(" ".join(text.split())[:LONGEST] for text in kind.texts)
        lines.append(f"{kind.count:10,} {kind.what:{width}}  row {kind.row:,}: {printable(shown)}".rstrip())
    return lines
