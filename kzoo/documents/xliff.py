"""XLIFF, versions 1.2 and 2: the units without a translation get one, to be reviewed.

https://docs.oasis-open.org/xliff/v1.2/os/xliff-core.html, https://docs.oasis-open.org/xliff/xliff-core/v2.1/
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from kzoo.data.translation_memories import UNTRANSLATED
from kzoo.documents.document import Content
from kzoo.documents.inline import Piece, Segment
from kzoo.documents.xml import fill, local_name, mixed_pieces, parsed, serialized
from kzoo.errors import UserError
from kzoo.text.languages import main_code

INLINE = {"g", "mrk", "pc"}
SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def read(path: Path) -> Content:
    """Read an .xliff or .xlf, of one direction."""
    tree = parsed(path.read_bytes(), str(path))
    root = tree.getroot()
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
        said = (above.get("translate") for above in (unit, *unit.iterancestors()))
        if next(filter(None, said), "yes") == "no":
            continue
        old = local_name(unit) == "trans-unit"
        for part in [unit] if old else unit.iterfind("{*}segment"):
            source, target = part.find("{*}source"), part.find("{*}target")
            if source is not None and not _is_translated(part, target):
                yield from _parts(f"unit {unit.get('id')}", old, part, source, target)


def _is_translated(part, target) -> bool:
    if target is None or not (len(target) or (target.text or "").strip()):
        return False
    return (target.get("state") or part.get("state")) not in UNTRANSLATED


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
        fill(element, pieces)
        if new.getparent() is None:
            if target is None:
                new.tail = None
                model.addnext(new)
            else:
                new.tail = target.tail
                part.replace(target, new)
            if not old:
                part.set("state", "translated")

    segments = [mark for mark in new.iter("{*}mrk") if mark.get("mtype") == "seg"]
    for element in segments or [new]:
        yield Segment(place, mixed_pieces(element, _is_inline), lambda pieces, at=element: put(at, pieces))


def _is_inline(element) -> bool:
    """Return whether an element's text is translated: of a name that stays the same, it is not."""
    kept = element.get("mtype") == "protected" or element.get("translate") == "no"
    return local_name(element) in INLINE and not kept
