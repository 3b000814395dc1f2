"""XLIFF, versions 1.2 and 2: the units without a translation get one, to be reviewed.

https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.1/
"""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.data.translation_memories import UNTRANSLATED
from kzoo.documents.anchors import anchored
from kzoo.documents.document import Content
from kzoo.documents.icu import form_pieces
from kzoo.documents.inline import Inline, Piece, Segment, joined
from kzoo.documents.tagged import tagged_pieces
from kzoo.documents.xml import fill, local_name, mixed_pieces, paired, parsed, serialized, unpaired
from kzoo.errors import UserError
from kzoo.text.languages import main_code

INLINE = {"g", "mrk", "pc"}
# Elements that end what another with the same key begins, where a tool does not nest them.
BEGINS = {"ept": "bpt", "ex": "bx", "ec": "sc"}
PAIRS, PAIR_KEYS = BEGINS.keys() | BEGINS.values(), ("rid", "startRef", "id")
# Of <x>, as Angular names what begins and ends, and numbers the beginnings: START_TAG_SPAN_1, CLOSE_TAG_SPAN.
ANGULAR = re.compile(r"(START|CLOSE)_(\w+?)(_\d+)?")
# Tags that are written as text, as in web pages, unlike `a <b and c> d`; and line ends, where they are more
# than a layout.
TAG = r"</?\w[\w:.-]*(?:\s+[\w:.-]+=[^<>]*)?\s*/?>"
TAGS, LINES = re.compile(f"({TAG})"), re.compile(f"({TAG}|\n)")
SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def read(path: Path) -> Content:
    """Read an .xliff or .xlf, of one direction."""
    tree = parsed(path.read_bytes(), str(path))
    root = tree.getroot()
    if local_name(root) != "xliff":
        raise UserError(f"{path}: not XLIFF: its first element is {local_name(root)!r:.40}")
    files, names = list(root.iter("{*}file")), ("source-language", "target-language")
    if root.get("version", "").startswith("2"):
        files, names = [root], ("srcLang", "trgLang")

    def write(file: BinaryIO, target: str | None):
        for element in files:
            if target and not element.get(names[1]):
                element.set(names[1], target)
        file.write(serialized(tree))

    named = [list(filter(None, (file.get(name) for file in files))) for name in names]
    for codes in named:
        if len(set(map(main_code, codes))) > 1:
            several = ", ".join(dict.fromkeys(codes))
            raise UserError(f"{path}: names several languages, {several:.80}: give a file for each")
    source, target = (next(iter(codes), None) for codes in named)
    return Content(_segments(root), write, (source, target))


def _segments(root) -> Iterator[Segment]:
    for unit in root.iter("{*}trans-unit", "{*}unit"):
        if _nearest(unit, "translate") == "no":
            continue
        old = local_name(unit) == "trans-unit"
        for part in [unit] if old else unit.iterfind("{*}segment"):
            source, target = part.find("{*}source"), part.find("{*}target")
            if source is not None and not _is_translated(part, target):
                yield from _parts(f"unit {unit.get('id')}", old, part, source, target)


def _is_translated(part, target) -> bool:
    return _is_reviewed(part, target) and all(map(_is_filled, [target, *_marks(target)]))


def _is_reviewed(part, target) -> bool:
    """Return whether what a target has is a translation."""
    return target is not None and (target.get("state") or part.get("state")) not in UNTRANSLATED


def _is_filled(element) -> bool:
    """Return whether a target or a segment has text, or elements other than segments."""
    return bool("".join(element.itertext()).strip() or {*element.iterchildren("*")} - {*_marks(element)})


def _marks(element) -> list:
    """Return the elements of the segments in a source or target of XLIFF 1.2."""
    return [mark for mark in element.iter("{*}mrk") if mark.get("mtype") == "seg"]


def _parts(place: str, old: bool, part, source, target) -> Iterator[Segment]:
    """Yield the texts of a unit: its own, or those of its segments, which XLIFF 1.2 marks in a copy of it."""
    marked = part.find("{*}seg-source")
    model = source if marked is None else marked
    new = copy.deepcopy(model)
    new.tag = source.tag.removesuffix("source") + "target"
    for key in list(new.attrib):
        if key != SPACE:
            del new.attrib[key]
    if old:
        new.set("state", "needs-review-translation")

    def put(element, pieces: list[Piece]):
        fill(element, unpaired(pieces))
        if new.getparent() is None:
            if target is None:
                new.tail = None
                model.addnext(new)
            else:
                new.tail = target.tail
                part.replace(target, new)
            if not old:
                part.set("state", "translated")

    tags = LINES if _nearest(model, SPACE) == "preserve" else TAGS
    found = _marks(target) if _is_reviewed(part, target) else []
    done = {mark.get("mid"): mark for mark in found if _is_filled(mark)}
    for element in _marks(new) or [new]:
        if (kept := done.get(element.get("mid"))) is not None:
            element.text, element[:] = kept.text, copy.deepcopy(kept[:])
            continue
        pieces = form_pieces(paired(_tagged(mixed_pieces(element, _is_inline), tags), _mark_of))
        segment = Segment(place, pieces, lambda pieces, at=element: put(at, pieces))
        yield anchored(segment, _is_value) if _lone(pieces) == 1 else segment


def _is_inline(element) -> bool:
    """Return whether an element's text is translated: of a name that stays the same, it is not."""
    kept = element.get("mtype") == "protected" or element.get("translate") == "no"
    return local_name(element) in INLINE and not kept


def _nearest(element, attribute: str) -> str | None:
    """Return the value of an attribute of an element, or else of the nearest above that has it."""
    values = (above.get(attribute) for above in (element, *element.iterancestors()))
    return next(filter(None, values), None)


def _lone(pieces: list[Piece]) -> int:
    """Return the number of elements without text: if there are several, their order may have a meaning."""
    elements = [piece for piece in pieces if isinstance(piece, Inline)]
    return sum(_lone(element.pieces) if element.pieces else 1 for element in elements)


def _is_value(piece: Inline) -> bool:
    """Return whether a piece stands for a value in a sentence; not for a line break."""
    if isinstance(piece.node, tuple) or local_name(piece.node) not in {"x", "ph"}:
        return False
    about = " ".join([*piece.node.values(), *piece.node.itertext()])
    return piece.node.get("ctype") != "lb" and "<br" not in about


def _tagged(pieces: list[Piece], tags: re.Pattern) -> list[Piece]:
    """Return pieces in whose strings tags are elements."""
    found = []
    for piece in pieces:
        if isinstance(piece, str):
            found += tagged_pieces(piece, tags)
        else:
            found.append(piece._replace(pieces=_tagged(piece.pieces, tags)))
    return joined(found)


def _mark_of(element) -> tuple[tuple | str, bool] | None:
    name = local_name(element)
    if name == "x" and (named := ANGULAR.fullmatch(element.get("id", ""))):
        return named[2], named[1] == "CLOSE"
    if name not in PAIRS:
        return None
    key = next(filter(None, map(element.get, PAIR_KEYS)), None)
    return (BEGINS.get(name, name), key), name in BEGINS
