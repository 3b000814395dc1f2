"""The texts of a piece of HTML, and the same HTML with their translations."""

import importlib.util
import re
from collections.abc import Iterator, Mapping

from kzoo.errors import UserError
from kzoo.text.languages import has_spaces

# Elements that stand within a sentence; all others end it.
INLINE = {
    *("a", "abbr", "b", "bdi", "bdo", "big", "cite", "del", "dfn", "em", "font", "i", "ins", "label", "mark"),
    *("q", "s", "small", "span", "strong", "sub", "sup", "time", "tt", "u"),
}
KEPT = {"code", "kbd", "math", "pre", "samp", "script", "style", "svg", "textarea", "var"}  # as they are


class Markup:
    """A piece of HTML whose texts are to be translated.

    A text goes on through inline elements. Its translation has them where the translation of their own text
    is found; if one is not found, the texts before, in and after each element are translated by themselves.
    Code, attributes, and elements with `translate="no"` stay.

    Args:
        html: str.

    Attributes:
        texts: those that `translated` needs the translations of, each once.

    Raises:
        UserError: BeautifulSoup is not installed, or the elements are nested too deeply.
    """

    def __init__(self, html: str):
        if not importlib.util.find_spec("bs4"):
            raise UserError("the server cannot read HTML, because beautifulsoup4 is not installed: send text")
        from bs4 import BeautifulSoup

        self._soup = BeautifulSoup(html, "html.parser")
        try:
            self._runs = list(_runs(self._soup))
        except RecursionError:
            raise UserError("the HTML's elements are nested too deeply") from None
        self.texts = list(dict.fromkeys(text for run in self._runs for text in _texts(run) if text))

    def translated(self, translations: Mapping[str, str], target: str | None) -> str:
        """Return the HTML with translations.

        Args:
            translations: of each of `texts`.
            target: the language of the translations.
        """
        for run in self._runs:
            _translate(run, translations, target)
        return str(self._soup)


def _runs(element) -> Iterator[list]:
    """Yield the runs of nodes below an element that are a text each."""
    run = []
    for node in element.contents:
        if _inline(node):
            run.append(node)
            continue
        if _text(run):
            yield run
        run = []
        if _is_element(node) and not _kept(node):
            yield from _runs(node)
    if _text(run):
        yield run


def _is_element(node) -> bool:
    return hasattr(node, "contents")


def _inline(node) -> bool:
    """Return whether a node is text, or an element of a text's markup; a comment or a script is neither."""
    from bs4 import NavigableString

    if not _is_element(node):
        return type(node) is NavigableString
    return node.name in INLINE and not _kept(node) and all(map(_inline, node.contents))


def _kept(element) -> bool:
    classes = element.get("class") or ()
    return element.name in KEPT or element.get("translate") == "no" or "notranslate" in classes


def _text(nodes: list) -> str:
    """Return the text of nodes, without white space at its ends and with single spaces, as HTML shows it."""
    return " ".join("".join(node.get_text() for node in nodes).split())


def _texts(run: list) -> Iterator[str]:
    yield _text(run)
    if any(map(_is_element, run)):
        for node in run:
            yield from _texts(node.contents) if _is_element(node) else [_text([node])]


def _translate(run: list, translations: Mapping[str, str], target: str | None):
    """Replace a run's texts by their translations, in place."""
    elements = [node for node in run if _is_element(node)]
    found = translations.get(_text(run), "")
    places = {} if len(run) == 1 and elements else _places(elements, found, translations, target)
    if len(places) < len(elements):
        for node in run:
            if _is_element(node):
                _translate(node.contents[:], translations, target)
            else:
                node.replace_with(_spaced(node, translations.get(_text([node]), "")))
        return
    whole = "".join(node.get_text() for node in run)
    begin, end = whole[: len(whole) - len(whole.lstrip())], whole[len(whole.rstrip()) :]
    new, place = [begin], 0
    for (start, stop), element in sorted(places.items(), key=lambda item: item[0]):
        element.string = found[start:stop]
        new += [found[place:start], element]
        place = stop
    new += [found[place:] + end]
    parent, at = run[0].parent, run[0].parent.index(run[0])
    for node in run:
        node.extract()
    for node in reversed(new):
        parent.insert(at, node)


def _places(elements: list, found: str, translations: Mapping[str, str], target: str | None) -> dict:
    """Return where in a translation each element's own translation is; without those that are not clear."""
    places, edge = {}, r"\b" if has_spaces(target) else ""
    for element in elements:
        own = translations.get(_text([element]), "").rstrip(".。").strip()
        hits = [hit.span() for hit in re.finditer(edge + re.escape(own) + edge, found, re.I)] if own else []
        nested = any(map(_is_element, element.contents))
        if len(hits) == 1 and not nested and not any(a < hits[0][1] and hits[0][0] < b for a, b in places):
            places[hits[0]] = element
    return places


def _spaced(node: str, text: str) -> str:
    """Return a text with the white space around another."""
    if not text:
        return str(node)
    return node[: len(node) - len(node.lstrip())] + text + node[len(node.rstrip()) :]
