"""Documents and presentations of Microsoft Office (ECMA-376): their paragraphs are made of runs.

WordprocessingML and DrawingML name what a paragraph is made of alike: `p`, `r`, `t`, `rPr`, in their own
namespaces.
"""

import copy
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

from kzoo.documents.anchors import anchored, has_letters
from kzoo.documents.archive import Archive
from kzoo.documents.document import Content
from kzoo.documents.inline import Inline, Piece, Segment, joined, whole
from kzoo.documents.xml import local_name, parsed, serialized

PARTS = {
    ".docx": (r"word/(document|header|footer|footnotes|endnotes)\d*\.xml", "word/document"),
    ".pptx": (r"ppt/(slides|notesSlides|diagrams)/\w+\.xml", "ppt/slides/"),
}
MARKED = "marked"  # an element around what a bookmark or a comment is on, while the document is read
CONTAINERS = {"bdo", "customXml", "dir", "hyperlink", "ins", "moveTo", "sdt", "smartTag", MARKED}  # of runs
TEXTS = {"t", "noBreakHyphen"}  # in runs
PROPERTIES = {"pPr", "sdtPr", "customXmlPr", "smartTagPr"}  # they come first
# What has no place of its own within a text. Beginnings stay before it, ends behind it. Where something else
# ends the text, as a field does, they stay where they are.
BEGINNINGS = {"bookmarkStart", "commentRangeStart", "moveFromRangeStart", "moveToRangeStart", "permStart"}
ENDS = {name.replace("Start", "End") for name in BEGINNINGS}
ENDS |= {"proofErr", "endParaRPr", "sdtEndPr", "del", "moveFrom"}  # deleted text, too
UNSEEN = {"lastRenderedPageBreak", "softHyphen"}
NOTES = {"footnoteReference", "endnoteReference", "commentReference"}
HYPHEN = "\u2011"  # a noBreakHyphen
# Spelling and languages: what neighbouring runs of one look differ in.
NO_LOOK = {"lang", "altLang", "noProof", "dirty", "err", "smtClean"}
SPACE = "{http://www.w3.org/XML/1998/namespace}space"


def read(path: Path) -> Content:
    """Read a .docx or .pptx."""
    archive = Archive(path, *PARTS[path.suffix.lower()])
    trees = {name: parsed(content, f"{path}: {name}") for name, content in archive.parts.items()}
    from lxml import etree

    def write(file: BinaryIO, target: str | None):
        for tree in trees.values():
            etree.strip_tags(tree, MARKED)
        archive.write(file, {name: serialized(tree) for name, tree in trees.items()})

    return Content((segment for name, tree in trees.items() for segment in _segments(name, tree)), write)


def _segments(name: str, tree) -> Iterator[Segment]:
    _enclose(tree)
    for number, paragraph in enumerate(list(tree.iter("{*}p")), 1):
        runs = _Runs(paragraph, paragraph.tag.removesuffix("p"))
        yield anchored(Segment(f"{name}, paragraph {number}", runs.pieces, runs.put), _is_note, _is_comment)


def _enclose(tree):
    """Put what a bookmark or a comment of Word is on into an element, if it is text within a paragraph."""
    for kind in ("bookmark", "commentRange"):
        begun, texts = {}, 0
        for element in list(tree.iter(f"{{*}}{kind}Start", f"{{*}}{kind}End", "{*}t")):
            if local_name(element) == "t":
                texts += bool((element.text or "").strip())
                continue
            key = next((value for name, value in element.items() if name.endswith("}id")), None)
            if local_name(element).endswith("Start"):
                begun[key] = element, texts
                continue
            (start, before), parent = begun.pop(key, (None, texts)), element.getparent()
            if texts > before and start.getparent() is parent and local_name(parent) == "p":
                marked = start.makeelement(MARKED)
                start.addprevious(marked)
                while marked.getnext() is not element:
                    marked.append(marked.getnext())
                marked.append(element)


def _is_note(piece: Inline) -> bool:
    """Return whether a piece is the number of a note, set by Word or by hand."""
    if isinstance(piece.node, _Runs):
        return False
    raised = piece.node.find("{*}rPr/{*}vertAlign")
    by_hand = raised is not None and "superscript" in raised.values() and not has_letters(whole([piece]))
    return by_hand or any(local_name(part) in NOTES for part in piece.node)


def _is_comment(piece: Inline) -> bool:
    return any(local_name(part) == "commentReference" for part in piece.node)


class _Runs:
    """The runs in a paragraph, or in a container within one.

    Those that look as most of the text does are strings, and the others elements, whose nodes are runs,
    `_Runs` of containers, or anything else that a paragraph may have.
    """

    def __init__(self, parent, namespace: str, container=None):
        self.element, self._parent, self._namespace = container, parent, namespace
        found = list(self._found())
        looks = Counter()
        for node, text in found:
            if isinstance(text, str) and text.strip():
                looks[_look(node)] += len(text)
        usual = max(looks, key=looks.get, default=None)
        self._usual, self.pieces, last = None, [], None
        for node, text in found:
            look = None
            if not isinstance(text, str):
                self.pieces.append(Inline(node, text))
            elif not text.strip() or (look := _look(node)) == usual:
                self._usual = self._usual if look is None and self._usual is not None else node
                self.pieces.append(text)
            elif look == last:
                before = self.pieces.pop()
                self.pieces.append(before._replace(pieces=[whole([before]) + text]))
            else:
                self.pieces.append(Inline(node, [text]))
            last = look
        self.pieces = joined(self.pieces)
        if self._usual is None:
            self._usual = next(parent.iter(f"{namespace}r"), None)

    def _found(self) -> Iterator[tuple[Any, str | list[Piece]]]:
        """Yield nodes with the text of those that are runs, and the pieces of others."""
        children, is_marked = list(self._parent), local_name(self._parent) == MARKED
        self._nodes, marks, ended = [], [], not is_marked
        for child in children[1:-1] if is_marked else children:  # the text goes on through both marks
            name = local_name(child)
            if name in BEGINNINGS | ENDS and not ended:
                marks.append(child)
            elif name not in PROPERTIES and name:
                for node, text in self._parts(child, name):
                    if not text:
                        yield from self._in_place(marks)
                    marks, ended = [], not text
                    yield node, text
        if not is_marked:
            yield from self._in_place(marks)

    def _in_place(self, marks: list) -> Iterator[tuple[Any, list[Piece]]]:
        self._nodes += marks
        yield from ((mark, []) for mark in marks)

    def _parts(self, child, name: str) -> Iterator[tuple[Any, str | list[Piece]]]:
        """Yield what a child of the paragraph consists of."""
        is_run = child.tag == f"{self._namespace}r"
        runs = _split(child) if is_run else [child]
        self._nodes += runs
        for run in runs:
            text = _text(run) if is_run else ""
            within = child.find("{*}sdtContent") if name == "sdt" else child
            if text:
                yield run, text
            elif is_run and all(local_name(part) in {"rPr"} | TEXTS for part in run):
                continue  # it shows nothing: the text goes on
            elif name in CONTAINERS and within is not None:
                inner = _Runs(within, self._namespace, child)
                yield inner, inner.pieces
            else:
                yield run, []

    def put(self, pieces: list[Piece]):
        """Replace the runs by pieces."""
        new = []
        for piece in pieces:
            if isinstance(piece, str):
                new.append(_with_text(self._usual, piece))
            elif isinstance(piece.node, _Runs):
                piece.node.put(piece.pieces)
                new.append(piece.node.element)
            else:
                new.append(_with_text(piece.node, whole(piece.pieces)) if piece.pieces else piece.node)
        ends = [child for child in self._parent if local_name(child) in ENDS and child not in self._nodes]
        for node in self._nodes + ends:
            self._parent.remove(node)
        self._parent.extend(new + ends)


def _split(run) -> list:
    """Return a run as several, in its place, of which each has text alone, or one other thing."""
    groups = []
    for child in list(run):
        name = local_name(child)
        if name in UNSEEN:
            run.remove(child)
        elif name != "rPr":
            if name in TEXTS and groups and local_name(groups[-1][-1]) in TEXTS:
                groups[-1].append(child)
            else:
                groups.append([child])
    if len(groups) < 2:
        return [run]
    properties, runs = run.find("{*}rPr"), []
    for group in groups:
        part = run.makeelement(run.tag, run.attrib, run.nsmap)
        if properties is not None:
            part.append(copy.deepcopy(properties))
        part.extend(group)
        run.addprevious(part)
        runs.append(part)
    run.getparent().remove(run)
    return runs


def _text(run) -> str:
    found = [HYPHEN if local_name(child) == "noBreakHyphen" else child.text or ""
             for child in run if local_name(child) in TEXTS]  # fmt: skip
    return "".join(found)


def _look(run) -> str:
    """Return what tells how a run looks."""
    from lxml import etree

    properties = run.find("{*}rPr")
    if properties is None:
        return ""
    own = sorted(item for item in properties.items() if item[0] not in NO_LOOK)
    inner = sorted(
        etree.tostring(child, method="c14n", with_tail=False)
        for child in properties
        if local_name(child) not in NO_LOOK
    )
    return repr([own, inner]) if own or inner else ""


def _with_text(run, text: str):
    """Return a copy of a run with another text."""
    new = copy.deepcopy(run)
    new.tail = None
    for child in list(new):
        if local_name(child) != "rPr":
            new.remove(child)
    element = new.makeelement(f"{new.tag[:-1]}t")
    element.text = text
    if text != text.strip() and "wordprocessingml" in new.tag:
        element.set(SPACE, "preserve")
    new.append(element)
    return new
