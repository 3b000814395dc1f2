"""Texts with inline elements, such as a bold word, and the elements' places in the translations."""

import os.path
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple, Union

from kzoo.documents.placeholders import unended
from kzoo.text.languages import has_spaces

WORD = re.compile(r"\w+(?:[-'’]\w+)*")
LONG, ENDING = 4, 2  # letters: a word that means something, and what inflection changes at most

Piece = Union[str, "Inline"]


class Inline(NamedTuple):
    """An element within a text. One without text, such as a picture, ends the text.

    `node` is what the format knows it by.
    """

    node: Any
    pieces: list[Piece]


class Segment(NamedTuple):
    """A piece of a document that is translated by itself.

    Attributes:
        place: where in the document it is, for people.
        pieces: its texts and elements.
        put: replaces its pieces in the document.
    """

    place: str
    pieces: list[Piece]
    put: Callable[[list[Piece]], object]


def joined(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces with neighbouring strings as one."""
    found = []
    for piece in pieces:
        if isinstance(piece, str) and found and isinstance(found[-1], str):
            found[-1] += piece
        elif piece:
            found.append(piece)
    return found


def whole(pieces: Iterable[Piece]) -> str:
    """Return the text of pieces as it is in the document."""
    return "".join(piece if isinstance(piece, str) else whole(piece.pieces) for piece in pieces)


def texts(pieces: list[Piece]) -> Iterator[str]:
    """Yield the texts that `translated` needs the translations of, with single spaces, as HTML shows them."""
    for run in _runs(pieces):
        if text := _text(run):
            yield text
            if len(run) > 1 or isinstance(run[0], Inline):
                for piece in run:
                    yield from texts([piece] if isinstance(piece, str) else piece.pieces)


def translated(
    pieces: list[Piece], translations: Mapping[str, str], target: str | None, part: bool = False
) -> list[Piece] | None:
    """Return pieces with translations.

    A text goes on through inline elements. Its translation has them where the translation of their own text
    is found, or else around the longest sequence of its words, in any form. If one is not found, the texts
    before, in and after each element are translated by themselves.

    Args:
        pieces: as of a segment.
        translations: of each of `texts`; an empty one: there is none.
        target: the language of the translations.
        part: bool. Whether the pieces are part of a text, whose translations get no full stop of their own.

    Returns:
        The new pieces; `None` if a translation that is needed is empty.
    """
    new = []
    for run in _runs(pieces):
        found = _translated(run, translations, target, part)
        if found is None:
            return None
        new += found
    return new


def _runs(pieces: list[Piece]) -> Iterator[list[Piece]]:
    """Yield the pieces of each text, and those between."""
    run = []
    for piece in pieces:
        if isinstance(piece, str) or _text([piece]):
            run.append(piece)
            continue
        if run:
            yield run
        yield [piece]
        run = []
    if run:
        yield run


def _text(pieces: list[Piece]) -> str:
    return " ".join(whole(pieces).split())


def _translated(
    run: list[Piece], translations: Mapping[str, str], target: str | None, part: bool
) -> list[Piece] | None:
    if not (text := _text(run)):
        return run
    found = translations[text]
    if not found:
        return None
    if part:
        found = unended(found, text)
    new, elements = [], [piece for piece in run if isinstance(piece, Inline)]
    places = {} if len(run) == 1 and elements else _places(elements, found, translations, target)
    if len(places) < len(elements):
        for piece in run:
            own = [piece] if isinstance(piece, str) else piece.pieces
            inner = translated(own, translations, target, part or len(run) > 1)
            if inner is None:
                return None
            new += inner if isinstance(piece, str) else [piece._replace(pieces=inner)]
        return new
    place = 0
    for (start, stop), element in sorted(places.items(), key=lambda item: item[0]):
        new += [found[place:start], element._replace(pieces=[found[start:stop]])]
        place = stop
    begin, end = _edges(whole(run))
    return joined([begin, *new, found[place:], end])


def _places(elements: list[Inline], found: str, translations: Mapping[str, str], target: str | None) -> dict:
    """Return where in a translation each element's own translation is; without those that are not clear."""
    places, edge = {}, r"\b" if has_spaces(target) else ""
    for element in elements:
        own = translations[_text([element])].rstrip(".。").strip()
        hits = [hit.span() for hit in re.finditer(edge + re.escape(own) + edge, found, re.I)] if own else []
        if not hits and edge:
            hits = _alike(own, found)
        nested = any(isinstance(piece, Inline) for piece in element.pieces)
        if len(hits) == 1 and not nested and not any(a < hits[0][1] and hits[0][0] < b for a, b in places):
            places[hits[0]] = element
    return places


def _alike(own: str, found: str) -> list[tuple[int, int]]:
    """Return where in a text the longest sequences of words are that occur in another, in any form."""
    known, runs, before = [word.casefold() for word in WORD.findall(own)], [], False
    for word in WORD.finditer(found):
        is_known = any(_same_word(word[0].casefold(), other) for other in known)
        if is_known and before:
            runs[-1].append(word)
        elif is_known:
            runs.append([word])
        before = is_known
    runs = [run for run in runs if any(len(word[0]) >= LONG for word in run)]
    longest = max(map(len, runs), default=0)
    return [(run[0].start(), run[-1].end()) for run in runs if len(run) == longest]


def _same_word(one: str, other: str) -> bool:
    """Return whether two words differ at most in their endings."""
    alike = len(os.path.commonprefix([one, other]))
    return one == other or alike >= LONG and alike >= max(len(one), len(other)) - ENDING


def _edges(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text that has more than that."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
