"""Texts of OpenDocument (ODF 1.3), such as LibreOffice writes them."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import BinaryIO

from kzoo.documents.anchors import anchored
from kzoo.documents.archive import Archive
from kzoo.documents.document import Content
from kzoo.documents.inline import Inline, Segment
from kzoo.documents.xml import fill, local_name, mixed_pieces, parsed, serialized

INLINE = {"span", "a"}
CHARACTERS = {"s": " ", "soft-page-break": ""}
ANCHORED = {"note", "bookmark"}
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
            pieces = mixed_pieces(element, _is_inline, CHARACTERS)
            place, put = f"{name}, paragraph {number}", partial(fill, element)
            yield anchored(Segment(place, pieces, put), _is_anchored)


def _is_inline(element) -> bool:
    return local_name(element) in INLINE


def _is_anchored(piece: Inline) -> bool:
    return local_name(piece.node) in ANCHORED


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
