"""Elements within a sentence that are no part of it, such as a note's number: each stays behind its word."""

import itertools
from collections.abc import Callable, Iterable
from typing import NamedTuple

from kzoo.documents.inline import Inline, Piece, Segment, joined, unwrapped

HYPHENS = "-'’/_"
ENDS = {*".!?…。！？"}
Test = Callable[[Inline], bool]


class Anchor(NamedTuple):
    """The node of a word that an element, such as a note's number, stands behind."""

    space: str
    element: Inline


def has_letters(text: str) -> bool:
    """Return whether a text is more than a number or a mark."""
    return any(map(str.isalpha, text))


def anchored(segment: Segment, is_anchored: Test, is_unseen: Test = lambda _: False) -> Segment:
    """Return a segment whose texts go on through some elements, which stay as they are, behind their words.

    Args:
        segment: of a format.
        is_anchored: whether an element is one of these. At the beginning or the end of a text, and within a
            word, it ends the text.
        is_unseen: whether it shows nothing, and so may change places with a space.
    """

    def put(new: list[Piece]):
        segment.put(unwrapped(new, _around))

    return segment._replace(pieces=_anchored(segment.pieces, is_anchored, is_unseen, {}), put=put)


def _anchored(
    pieces: list[Piece], is_anchored: Test, is_unseen: Test, known: dict[int, str], after: str = ""
) -> list[Piece]:
    """Return pieces, which a text follows, with the words that elements stand behind as `Inline`."""
    found, followed = [], [*pieces, after]

    def goes_on(piece: Piece) -> bool:
        return isinstance(piece, str) or not is_anchored(piece)

    for number, piece in enumerate(pieces, 1):
        # The next word is in one of two: a space or a mark may stand between elements.
        following = _opening(itertools.takewhile(goes_on, followed[number : number + 2]), known)
        if isinstance(piece, str):
            found.append(piece)
        elif not is_anchored(piece):
            inner = _anchored(piece.pieces, is_anchored, is_unseen, known, following)
            found.append(piece._replace(pieces=inner))
        else:
            element = piece._replace(pieces=[])  # as it is
            before = found[-1] if found else ""
            new = _behind_a_word(element, before, following, is_unseen(element))
            found[-1:] = new or [*found[-1:], element]
    return joined(found)


def _opening(pieces: Iterable[Piece], known: dict[int, str]) -> str:
    """Return the first character of pieces, and a letter behind it: what `_behind_a_word` asks for.

    Elements are looked into once: theirs are put into `known`, by the elements' ids.
    """
    text = ""
    for piece in pieces:
        if isinstance(piece, str):
            text += piece
            continue
        if id(piece) not in known:
            known[id(piece)] = _opening(piece.pieces, known)
        text += known[id(piece)]
    return text[:1] + next(filter(str.isalpha, text[1:]), "")


def _behind_a_word(element: Inline, before: Piece, following: str, unseen: bool) -> list[Piece] | None:
    """Return the last word before an element with it, and what is before it; `None` if it ends the text."""
    if not (has_letters(following) or following[:1] in ENDS):
        return None
    joins = following[0].isalnum() or following[0] in HYPHENS
    if isinstance(before, Inline):
        return [Inline(Anchor("", element), [before])] if before.pieces and not joins else None
    words = before.rstrip()
    word, space = words.split()[-1:], before[len(words) :]
    if not any(map(str.isalnum, "".join(word))) or joins and not (space and unseen):
        return None
    start = len(words) - len(word[0])
    anchor = Anchor("" if joins else space, element)
    return [words[:start], Inline(anchor, [words[start:]]), space if joins else ""]


def _around(node: object) -> tuple[list[Piece], list[Piece]] | None:
    """Return what `_anchored` put into a node, which stood behind its pieces."""
    return ([], [node.space, node.element]) if isinstance(node, Anchor) else None
