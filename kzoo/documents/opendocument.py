"""Texts of OpenDocument (ODF 1.3), such as LibreOffice writes them."""

from collections.abc import Collection, Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.anchors import Test, anchored
from kzoo.documents.archive import Archive
from kzoo.documents.document import Content
from kzoo.documents.inline import Piece, Segment
from kzoo.documents.xml import fill, local_name, mixed_pieces, paired, parsed, serialized, unpaired

INLINE = {"span", "a"}
CHARACTERS = {"s": " ", "soft-page-break": ""}
UNSEEN = {"annotation", "bookmark", "change"}
ANCHORED = UNSEEN | {"note"}
# What may have a beginning, whose name may end in `-start`, and an end; and what these have in common.
MARKED, KEYS = {"annotation", "bookmark", "change", "reference-mark"}, ("change-id", "name")
NOT_TRANSLATED = {"annotation", "tracked-changes"}
REVISIONS = "{http://openoffice.org/2009/office}"


def read(path: Path) -> Content:
    """Read an .odt."""
    archive = Archive(path, r"(content|styles)\.xml", "content.xml")
    trees = {name: parsed(content, f"{path}: {name}") for name, content in archive.parts.items()}

    def write(file: BinaryIO, target: str | None):
        archive.write(file, {name: serialized(tree) for name, tree in trees.items()})

    return Content((segment for name, tree in trees.items() for segment in _segments(name, tree)), write)


def _segments(name: str, tree) -> Iterator[Segment]:
    _strip_revisions(tree)
    for number, element in enumerate(tree.iter("{*}p", "{*}h"), 1):
        if not any(local_name(above) in NOT_TRANSLATED for above in element.iterancestors()):
            pieces = paired(mixed_pieces(element, _is_inline, CHARACTERS), _mark_of)
            segment = Segment(f"{name}, paragraph {number}", pieces, partial(_put, element))
            yield anchored(segment, _is_one_of(ANCHORED), _is_one_of(UNSEEN))


def _put(element, pieces: list[Piece]):
    fill(element, unpaired(pieces))


def _is_inline(element) -> bool:
    return local_name(element) in INLINE


def _is_one_of(names: Collection[str]) -> Test:
    return lambda piece: not isinstance(piece.node, tuple) and local_name(piece.node) in names


def _mark_of(element) -> tuple[tuple, bool] | None:
    """Return what the beginning and the end of a bookmark, a change or a comment have in common."""
    name = local_name(element)
    key = next((_attribute(element, key) for key in KEYS if _attribute(element, key)), None)
    what = name.removesuffix("-start").removesuffix("-end")
    return ((what, key), name.endswith("-end")) if key and what in MARKED else None


def _strip_revisions(tree):
    """Remove the spans that only say in which session of LibreOffice their words were typed."""
    from lxml import etree

    styles = {
        _attribute(style, "name")
        for style in tree.iter("{*}style")
        if len(style) == 1
        and local_name(style[0]) == "text-properties"
        and all(key.startswith(REVISIONS) for key in style[0].attrib)
        and not len(style[0])
        and not _attribute(style, "parent-style-name")
    }
    for span in list(tree.iter("{*}span")):
        if _attribute(span, "style-name") in styles:
            span.tag = "stripped"
    etree.strip_tags(tree, "stripped")


def _attribute(element, name: str) -> str | None:
    return next((value for key, value in element.items() if key.endswith("}" + name)), None)
