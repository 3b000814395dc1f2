"""The texts of a piece of HTML, and the same HTML with their translations."""

import importlib.util
import itertools
import re
import warnings
from collections.abc import Iterator, Mapping

from kzoo.documents.anchors import anchored, has_letters
from kzoo.documents.inline import Inline, Piece, Segment, texts, translated, whole
from kzoo.documents.placeholders import WORD
from kzoo.errors import UserError

# Elements that stand within a sentence; all others end it.
INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark"),
    *("q", "s", "small", "span", "strong", "sub", "sup", "time", "tt", "u"),
}
# As they are; the last is in the table of contents of an EPUB.
KEPT = {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "var", "docAuthor"}
# Of these, what stands within a sentence.
ANCHORED = {"code", "img", "kbd", "math", "samp", "svg", "var"}

# What begins ends the elements before it whose end tag may be left out
# (https://html.spec.whatwg.org/#optional-tags). A list within an item does not end it.
ENDED = {
    "li": {"li"},
    **dict.fromkeys(("dt", "dd"), {"dt", "dd"}),
    **dict.fromkeys(("td", "th"), {"td", "th"}),
    "tr": {"tr"},
    **dict.fromkeys(("tbody", "tfoot"), {"thead", "tbody"}),
    "option": {"option"},
    **dict.fromkeys(
        ("address", "article", "aside", "blockquote", "center", "details", "div", "dl", "fieldset", "figure")
        + ("footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "main", "nav", "ol", "p")
        + ("pre", "section", "table", "ul"),
        {"p"},
    ),
}
WITHOUT_END = {"p"}.union(*ENDED.values())
EMPTY = re.compile(r"<(?:br|hr|img|input|link|meta)\b[^<>]*>", re.I)


class Markup:
    """A piece of HTML whose texts are to be translated.

    Code, attributes, and elements with `translate="no"` stay. `kzoo.documents.inline` says what becomes of
    the elements within a text.

    Args:
        html: str or bytes.
        parser: BeautifulSoup's, `"html.parser"`, or `"xml"` for XHTML.

    Attributes:
        soup: BeautifulSoup's. It writes it otherwise than `encode`.
        segments: the pieces between elements that end a text; their places are numbers.
        texts: those that `translated` needs the translations of, each once, with marks for elements.

    Raises:
        UserError: BeautifulSoup is not installed, or the elements are nested too deeply.
    """

    def __init__(self, html: str | bytes, parser: str = "html.parser"):
        bs4 = beautiful_soup()
        try:
            with warnings.catch_warnings():  # it warns of text that is an address, or of XML
                warnings.simplefilter("ignore")
                # `class="a  b"` and the lines' indents stay.
                everywhere = {bs4.BeautifulSoup.ROOT_TAG_NAME}
                self.soup = _ending_elements()(
                    html, parser, multi_valued_attributes=None, preserve_whitespace_tags=everywhere
                )
            for node in self.soup.contents:
                if isinstance(node, bs4.Doctype) and not self.soup.is_xml:
                    node.SUFFIX = ">"  # a line end of its own would come before that of the page
            self._anchored = _anchored_in(self.soup)
            runs = self._runs(self.soup)
            self.segments = [self._segment(str(number), run) for number, run in enumerate(runs, 1)]
        except RecursionError:
            raise UserError("the HTML's elements are nested too deeply") from None
        empty = EMPTY.findall(html if isinstance(html, str) else html.decode("latin-1"))
        most_have_slashes = sum(tag.endswith("/>") for tag in empty) > len(empty) / 2
        self._formatter = _formatter(self.soup.is_xml, most_have_slashes)
        found = (text for segment in self.segments for text in texts(segment.pieces))
        self.texts = list(dict.fromkeys(found))

    def translated(self, translations: Mapping[str, str]) -> str:
        """Return the HTML with translations of each of `texts`."""
        for segment in self.segments:
            if new := translated(segment.pieces, translations):
                segment.put(new)
        return self.soup.decode(formatter=self._formatter)

    def encode(self, encoding: str) -> bytes:
        """Return the markup as it is now, in an encoding."""
        return self.soup.encode(encoding, formatter=self._formatter)

    def _runs(self, element) -> Iterator:
        """Yield the runs of nodes below an element that are a text each, put into elements not written.

        Each can then be replaced without a search for its place, which takes long among many nodes.
        """
        old, new = list(element.contents), []
        element.clear()
        for is_text, nodes in itertools.groupby(old, self._inline):
            nodes = list(nodes)
            if is_text and whole(self._pieces(nodes)).strip():
                run = self.soup.new_tag("run")
                run.hidden = True
                run.extend(nodes)
                yield run
                nodes = [run]
            elif not is_text:
                for node in filter(_is_element, nodes):
                    if not _kept(node):
                        yield from self._runs(node)
            new += nodes
        element.extend(new)

    def _inline(self, node) -> bool:
        """Return whether a node is text or an element within one; a comment or a script is neither."""
        if not _is_element(node):
            return _is_text(node)
        return self._is_anchored(node) or (
            node.name in INLINE and not _kept(node) and all(map(self._inline, node.contents))
        )

    def _is_anchored(self, element) -> bool:
        return id(element) in self._anchored

    def _segment(self, place: str, run) -> Segment:
        def put(pieces: list[Piece]):
            run.clear()
            run.extend(_nodes(pieces))

        return anchored(
            Segment(place, self._pieces(run.contents), put),
            lambda piece: self._is_anchored(piece.node),
            lambda piece: _is_empty(piece.node),
        )

    def _pieces(self, nodes: list) -> list[Piece]:
        return [
            Inline(node, [] if self._is_anchored(node) else self._pieces(node.contents))
            if _is_element(node)
            else str(node)
            for node in nodes
        ]


def beautiful_soup():
    """Return the module of BeautifulSoup.

    Raises:
        UserError: it is not installed.
    """
    if not importlib.util.find_spec("bs4"):
        raise UserError("HTML needs beautifulsoup4: pip install beautifulsoup4")
    import bs4

    return bs4


def _ending_elements() -> type:
    """Return a BeautifulSoup that ends an element whose end tag is left out where browsers do."""
    import bs4

    class EndingElements(bs4.BeautifulSoup):
        def handle_starttag(self, name, *others, **named):
            ended = () if self.is_xml else ENDED.get(name, ())
            within = itertools.takewhile(lambda tag: tag.name in WITHOUT_END, reversed(self.tagStack))
            if found := next((tag.name for tag in within if tag.name in ended), None):
                self.handle_endtag(found)
            return super().handle_starttag(name, *others, **named)

    return EndingElements


def _formatter(is_xml: bool, has_slashes: bool):
    """Return what writes markup as it was read: attributes in their order, `<br>` or `<br/>`, `&nbsp;`."""
    from bs4.dammit import EntitySubstitution
    from bs4.formatter import HTMLFormatter, XMLFormatter

    def escaped(text: str) -> str:
        text = EntitySubstitution.substitute_xml(text)
        return text if is_xml else text.replace("\xa0", "&nbsp;")

    class AsRead(XMLFormatter if is_xml else HTMLFormatter):
        def attributes(self, tag):  # those of BeautifulSoup are sorted, and name the encoding in its way
            return [(name, getattr(value, "original_value", value)) for name, value in tag.attrs.items()]

    return AsRead(entity_substitution=escaped, void_element_close_prefix="/" if is_xml or has_slashes else "")


def _is_element(node) -> bool:
    return hasattr(node, "contents")


def _is_text(node) -> bool:
    from bs4 import NavigableString

    return type(node) is NavigableString


def _anchored_in(soup) -> set[int]:
    """Return the ids of elements that are code, pictures, notes' numbers or empty, or have one such alone."""
    found, with_letters = set(), set()
    for element in reversed(list(filter(_is_element, soup.descendants))):  # what is within an element, first
        children = element.contents
        if any(id(child) in with_letters or _is_text(child) and has_letters(child) for child in children):
            with_letters.add(id(element))
        is_raised = element.name == "sup" or element.name == "a" and _is_behind_a_word(element)
        is_note = is_raised and id(element) not in with_letters
        has_only_one = (
            element.name in INLINE and len(children) < 2 and all(id(child) in found for child in children)
        )
        if element.name in ANCHORED or is_note or has_only_one:
            found.add(id(element))
    return found


def _is_behind_a_word(element) -> bool:
    """Return whether a letter, or a mark that ends words, is before an element without a space.

    In languages without spaces, a number behind a letter may be the next word.
    """
    before = element.previous_element
    if not _is_text(before):
        return False
    last, may_be_a_word = before[-1:], (element.string or "").isdigit()
    return last in {*".,;:!?…)]»”’\"'"} or last.isalpha() and not (may_be_a_word and not WORD.match(last))


def _is_empty(element) -> bool:
    """Return whether an element shows nothing: others link to it."""
    return element.name in INLINE and not element.contents


def _kept(element) -> bool:
    classes = element.get("class", "").split()
    return element.name in KEPT or element.get("translate") == "no" or "notranslate" in classes


def _nodes(pieces: list[Piece]) -> list:
    """Return the nodes of pieces, with the elements' contents replaced."""
    found = []
    for piece in pieces:
        if isinstance(piece, str):
            found.append(piece)
            continue
        if piece.pieces:  # an anchored element has none, and stays as it is
            contents = _nodes(piece.pieces)
            piece.node.clear()
            piece.node.extend(contents)
        found.append(piece.node)
    return found
