"""Texts with inline elements, such as a bold word. In strings, marks stand for the elements."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from kzoo.text.alignment import Alignment

# Before an element's number, between it and the element's text, and after that: noncharacters of Unicode.
OPEN, NUMBERED, CLOSE = "\ufdd0", "\ufdd1", "\ufdd2"
MARK = f"{OPEN}[0-9]+{NUMBERED}|{CLOSE}"
NO_MARKS = str.maketrans("", "", OPEN + NUMBERED + CLOSE)
NO_BREAK = "\u00a0\u202f\u2007"  # spaces; the last is as wide as a digit
# Marks that belong to an element that ends a text: those before it that open something, those behind it.
# Of some, spaces tell where they belong; Chinese and Japanese have none beside theirs.
OPENING, CLOSING = r"(\[{（［｛「『【〔《〈", r")\]}）］｝」』】〕》〉。，、；：！？"
AT_NEXT = re.compile(rf"""((?<=\s)["'«‹“‘„‚{OPENING}]+|(?<![{OPENING}])[{OPENING}]+)$""")  # linear
AT_LAST = re.compile(rf"""^(["'»›”’.,;:!?…{CLOSING}]+(?=\s)|[{CLOSING}]+)""")
LAST_SPACE, SECOND_SPACE = re.compile(f" ((?:{MARK})*)$"), re.compile(f"(?<= )((?:{MARK})+) ")

Piece = Union[str, "Inline"]


class Inline(NamedTuple):
    """An element within a text. One without text, such as a picture, ends the text.

    `node` is what the format knows it by.
    """

    node: Any
    pieces: list[Piece]


Run = list[Piece] | Inline  # the pieces of a text; or an element that ends one, whose pieces are runs


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


def unwrapped(pieces: Iterable[Piece], around: Callable[[Any], Sequence[list] | None]) -> list[Piece]:
    """Return pieces with the content of elements in their place, between what `around` says of their nodes.

    An element for whose node it returns `None` stays.
    """
    found = []
    for piece in pieces:
        if isinstance(piece, str):
            found.append(piece)
            continue
        inner, ends = unwrapped(piece.pieces, around), around(piece.node)
        found += [piece._replace(pieces=inner)] if ends is None else [*ends[0], *inner, *ends[1]]
    return joined(found)


def whole(pieces: Iterable[Piece]) -> str:
    """Return the text of pieces as it is in the document."""
    return "".join(piece if isinstance(piece, str) else whole(piece.pieces) for piece in pieces)


def texts(pieces: list[Piece]) -> Iterator[str]:
    """Return the texts of pieces, with marks for elements, and with single spaces, as HTML shows them."""
    return _texts(_runs(pieces))


def _texts(runs: list[Run]) -> Iterator[str]:
    for run in map(_as_element, runs):
        if isinstance(run, Inline):
            yield from _texts(run.pieces)
        elif text := _marked(run)[0]:
            yield text


def translated(pieces: list[Piece], translations: Mapping[str, str]) -> list[Piece] | None:
    """Return pieces with translations.

    Args:
        pieces: as of a segment.
        translations: of each of `texts`, with its marks; an empty one: there is none.

    Returns:
        The new pieces; `None` if a translation is empty.
    """
    return _translated(_runs(pieces), translations)


def _translated(runs: list[Run], translations: Mapping[str, str]) -> list[Piece] | None:
    new = []
    for run in map(_as_element, runs):
        if isinstance(run, Inline):
            inner = _translated(run.pieces, translations)
            if inner is None:
                return None
            new.append(run._replace(pieces=inner))
            continue
        text, nodes = _marked(run)
        if not text:
            new += run
        elif translation := translations[text]:
            source = whole(run)
            begin, end = _edges(source)
            new += joined([begin, *pieces_of(_with_no_breaks(translation, source), nodes), end])
        else:
            return None
    return new


def plain(text: str) -> str:
    """Return a text without marks."""
    return whole(pieces_of(text))


def parts(text: str) -> list[str]:
    """Return the marks of a text, and what is before, between and after them."""
    return re.split(f"({MARK})", text)


def pieces_of(text: str, nodes: Sequence | None = None) -> list[Piece]:
    """Return the pieces of a text with marks. The nodes are `nodes`, or else the numbers."""
    levels = [[]]
    for part in parts(text):
        if part == CLOSE:
            levels.pop()
        elif part.startswith(OPEN):
            number = int(part[1:-1])
            levels[-1].append(Inline(nodes[number] if nodes else number, []))
            levels.append(levels[-1][-1].pieces)
        elif part:
            levels[-1].append(part)
    return levels[0]


def with_marks(pieces: list[Piece]) -> str:
    """Return the text of pieces whose nodes are numbers: the inverse of `pieces_of`."""
    return "".join(
        piece if isinstance(piece, str) else f"{OPEN}{piece.node}{NUMBERED}{with_marks(piece.pieces)}{CLOSE}"
        for piece in pieces
    )


def placed(pieces: list[Piece], alignment: Alignment) -> list[Piece] | None:
    """Return the translation of an aligned text with its elements; `None` if it has too few words for them.

    An element stands around the words that its own are aligned with. Of those that would overlap, the one
    whose alignment is clearer is placed first.
    """
    return _placed(pieces, alignment, 0, (0, len(alignment.words)), (0, len(alignment.translation)))


def _placed(
    pieces: list[Piece], alignment: Alignment, at: int, words: tuple[int, int], span: tuple[int, int]
) -> list[Piece] | None:
    """Return part of the translation, given by its words and its characters, with pieces that begin `at`."""
    elements = []
    for piece in pieces:
        start, at = at, at + len(whole([piece]))
        if isinstance(piece, Inline):
            elements.append((start, at, piece))
    free = np.zeros(len(alignment.words), bool)
    free[slice(*words)] = True
    clearest = [(alignment.words_of(start, stop, free) or (0.0,))[0] for start, stop, _ in elements]
    places = []
    for number in sorted(range(len(elements)), key=lambda number: -clearest[number]):
        start, stop, element = elements[number]
        found = (0.0, *words) if len(pieces) == 1 else alignment.words_of(start, stop, free)
        if found is None:
            return None
        _, first, last = found
        free[first:last] = False
        own = alignment.words[first][0], alignment.words[last - 1][1]
        inner = _placed(element.pieces, alignment, start, (first, last), own)
        if inner is None:
            return None
        places.append((own, element._replace(pieces=inner)))
    new, (place, end) = [], span
    for (start, stop), element in sorted(places, key=lambda pair: pair[0]):
        new += [alignment.translation[place:start], element]
        place = stop
    return joined([*new, alignment.translation[place:end]])


def _runs(pieces: list[Piece]) -> list[Run]:
    """Return the pieces of each text, and the elements that end one, with such runs as their pieces.

    A text goes on through an element that has text, as have all elements in it.
    """
    runs, run = [], []
    for piece in pieces:
        inner = None if isinstance(piece, str) else _runs(piece.pieces)
        if inner is None or len(inner) == 1 and isinstance(inner[0], list) and any(map(_has_text, inner[0])):
            run.append(piece)
            continue
        runs += [*_apart(run, bool(runs), True), piece._replace(pieces=inner)]
        run = []
    return [*runs, *_apart(run, bool(runs), False)]


def _apart(run: list[Piece], behind: bool, before: bool) -> Iterator[list[Piece]]:
    """Yield a run, and those of its marks that belong to the elements that it is `behind` or `before`."""
    first, last = [], []
    if behind and run and isinstance(run[0], str) and (marks := AT_LAST.search(run[0])):
        first, run = [marks[0]], joined([run[0][marks.end() :], *run[1:]])
    if before and run and isinstance(run[-1], str) and (marks := AT_NEXT.search(run[-1])):
        last, run = [marks[0]], joined([*run[:-1], run[-1][: marks.start()]])
    yield from filter(None, (first, run, last))


def _as_element(run: Run) -> Run:
    """Return the element that is all of a text, with the text within; any other run as it is."""
    if isinstance(run, list) and len(run) == 1 and isinstance(run[0], Inline):
        return run[0]._replace(pieces=[run[0].pieces])
    return run


def _has_text(piece: Piece) -> bool:
    """Return whether a piece of a text has some itself; all elements in a text do."""
    return isinstance(piece, Inline) or bool(piece.strip())


def _marked(run: list[Piece]) -> tuple[str, list]:
    """Return a text with marks and single spaces, and the nodes of its elements; `""` if it has no text."""
    nodes = []

    def numbered(pieces: list[Piece]) -> list[Piece]:
        found = []
        for piece in pieces:
            if isinstance(piece, str):
                found.append(piece.translate(NO_MARKS))
            else:
                nodes.append(piece.node)
                found.append(Inline(len(nodes) - 1, []))
                found[-1].pieces.extend(numbered(piece.pieces))
        return found

    text = " ".join(with_marks(numbered(run)).split())
    text = LAST_SPACE.sub(r"\1", SECOND_SPACE.sub(r"\1", f" {text} "))[1:]
    return (text, nodes) if any(map(_has_text, run)) else ("", nodes)


def _with_no_breaks(translation: str, source: str) -> str:
    """Return a translation with the source's no-break spaces, where it has a space beside the same."""
    if not any(map(source.__contains__, NO_BREAK)):
        return translation
    words, spaces = re.split(r"(\s)", source), {}
    for before, space, after in zip(words[::2], words[1::2], words[2::2], strict=False):
        if space in NO_BREAK:
            spaces[_beside(before, after)] = space
    words = re.split(r"(\s)", translation)
    for at in range(1, len(words), 2):
        before, after = (re.sub(MARK, "", word) for word in words[at - 1 : at + 2 : 2])
        words[at] = spaces.get(_beside(before, after), words[at])
    return "".join(words)


def _beside(before: str, after: str) -> tuple[str, str]:
    """Return what a no-break space stands beside: a mark, a number, or else both words."""
    before, after = _without_marks(before), _without_marks(after[::-1])[::-1]
    if not re.search(r"\w", after):
        return "", after
    if not re.search(r"\w", before) or re.search(r"\d", before):
        return before, ""
    return "" if re.search(r"\d", after) else before, after


def _without_marks(word: str) -> str:
    """Return a word without the marks that it begins with; of marks alone, the last."""
    return re.sub(r"^\W+(?=.)", "", word)


def _edges(text: str) -> tuple[str, str]:
    """Return the white space at both ends of a text that has more than that."""
    return text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
