"""Elements within a sentence that are no part of it, such as a note's number: each stays behind its word."""

import re
from collections.abc import Callable
from typing import NamedTuple

from kzoo.documents.inline import Inline, Piece, Segment, joined

# From the end of a text: its last word, or mark.
LAST_WORD = re.compile(r"\w+(?:[-'’]\w+)*|[^\w\s]")
# A text with letters, whose beginning is not the rest of a word.
GOES_ON = re.compile(r"(?=\W)[\W\d_]*[^\W\d_]")


class Anchor(NamedTuple):
    """The node of a word that an element, such as a note's number, stands behind."""

    space: str
    element: Inline


def has_letters(text: str) -> bool:
    """Return whether a text is more than a number or a mark."""
    return any(map(str.isalpha, text))


def anchored(segment: Segment, is_anchored: Callable[[Inline], bool]) -> Segment:
    """Return a segment whose texts go on through some elements, which stay as they are, behind their words.

    Args:
        segment: of a format.
        is_anchored: whether an element is one of these. At the beginning or the end of a text, and within a
            word, it ends the text.
    """

    def put(new: list[Piece]):
        segment.put(_released(new))

    return segment._replace(pieces=_anchored(segment.pieces, is_anchored), put=put)


def _anchored(pieces: list[Piece], is_anchored: Callable[[Inline], bool]) -> list[Piece]:
    found = []
    for number, piece in enumerate(pieces):
        before = found[-1] if found else None
        if isinstance(piece, str):
            found.append(piece)
            continue
        if not is_anchored(piece):
            found.append(piece._replace(pieces=_anchored(piece.pieces, is_anchored)))
            continue
        piece = piece._replace(pieces=[])  # as it is
        if not _goes_on(pieces[number + 1 : number + 2]):
            found.append(piece)
        elif isinstance(before, str) and (word := LAST_WORD.match(before.rstrip()[::-1])):
            end = len(before.rstrip())
            start = end - word.end()
            found[-1:] = [before[:start], Inline(Anchor(before[end:], piece), [before[start:end]])]
        elif isinstance(before, Inline) and before.pieces:
            found[-1] = Inline(Anchor("", piece), [before])
        else:
            found.append(piece)
    return joined(found)


def _goes_on(following: list[Piece]) -> bool:
    return bool(following) and isinstance(following[0], str) and bool(GOES_ON.match(following[0]))


def _released(pieces: list[Piece]) -> list[Piece]:
    """Return pieces with the elements that `_anchored` put into nodes."""
    found = []
    for piece in pieces:
        if isinstance(piece, str):
            found.append(piece)
        elif isinstance(piece.node, Anchor):
            found += [*_released(piece.pieces), piece.node.space, piece.node.element]
        else:
            found.append(piece._replace(pieces=_released(piece.pieces)))
    return joined(found)
