"""XML as trees of lxml, read without entities, and elements with mixed content as pieces of text."""

import importlib.util
from collections.abc import Callable, Hashable, Mapping
from types import MappingProxyType

from kzoo.data.safe_xml import SAFE_XML, check_declares_no_entities, check_no_entities
from kzoo.documents.inline import Inline, Piece, joined, unwrapped
from kzoo.errors import UserError, first_line


def parsed(content: bytes, where: str):
    """Return the tree of an XML file.

    Raises:
        UserError: it is not XML, or has entities; or lxml is missing.
    """
    if not importlib.util.find_spec("lxml"):
        raise UserError(f"{where} needs lxml: pip install lxml")
    from lxml import etree

    try:
        root = etree.fromstring(content, etree.XMLParser(**SAFE_XML))
    except etree.XMLSyntaxError as error:
        raise UserError(f"{where}, line {error.lineno}: not XML ({first_line(error)})") from None
    check_declares_no_entities(root, where)
    check_no_entities(root, where)
    return root.getroottree()


def serialized(tree) -> bytes:
    """Return the XML file of a tree, in its own encoding."""
    from lxml import etree

    encoding, standalone = tree.docinfo.encoding or "UTF-8", tree.docinfo.standalone or None
    return etree.tostring(tree, xml_declaration=True, encoding=encoding, standalone=standalone)


def local_name(element) -> str:
    """Return an element's name without its namespace; of a comment, `""`."""
    return element.tag.rpartition("}")[2] if isinstance(element.tag, str) else ""


def mixed_pieces(
    element, is_inline: Callable[..., bool], characters: Mapping[str, str] = MappingProxyType({})
) -> list[Piece]:
    """Return the text and the elements in an element.

    Args:
        element: lxml's.
        is_inline: whether an element stands within a text, which goes on in it.
        characters: the names of elements that stand for characters, which replace them.
    """
    found = [element.text or ""]
    for child in element:
        name = local_name(child)
        if name in characters:
            found.append(characters[name])
        else:
            within = mixed_pieces(child, is_inline, characters) if is_inline(child) else []
            found.append(Inline(child, within))
        found.append(child.tail or "")
    return joined(found)


def fill(element, pieces: list[Piece]):
    """Replace the contents of an element by pieces, as of `mixed_pieces`."""
    element.text = None
    element[:] = []
    last = None
    for piece in pieces:
        if isinstance(piece, Inline):
            last = piece.node
            last.tail = None
            if piece.pieces:
                fill(last, piece.pieces)
            element.append(last)
        elif last is None:
            element.text = (element.text or "") + piece
        else:
            last.tail = (last.tail or "") + piece


def paired(pieces: list[Piece], mark_of: Callable[..., tuple[Hashable, bool] | None]) -> list[Piece]:
    """Return pieces with one element, whose node is a pair, for two that say where something begins and ends.

    Args:
        pieces: of `mixed_pieces`.
        mark_of: function from an element to what both have in common and whether it is the end; `None` for
            any other element.
    """
    found, begun = [], {}
    for piece in pieces:
        if isinstance(piece, str) or isinstance(piece.node, tuple):
            found.append(piece)
        elif (mark := mark_of(piece.node)) is None:
            found.append(piece._replace(pieces=paired(piece.pieces, mark_of)))
        else:
            key, is_end = mark
            place, begin = begun.get(key, (len(found), None)) if is_end else (len(found), None)
            if place < len(found) and found[place] is begin:
                found[place:] = [Inline((begin.node, piece.node), joined(found[place + 1 :]))]
            else:
                found.append(piece)
                begun[key] = place, piece
    return joined(found)


def unpaired(pieces: list[Piece]) -> list[Piece]:
    """Return pieces as `paired` is given them; nodes may be pairs of strings, too."""

    def around(node: object) -> list[list[Piece]] | None:
        if not isinstance(node, tuple):
            return None
        return [[one if isinstance(one, str) else Inline(one, [])] for one in node]

    return unwrapped(pieces, around)
