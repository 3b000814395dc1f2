"""The texts of HTML, and its elements in the translations; the translations are given."""

import pytest
from message_of import message_of

pytest.importorskip("bs4")

from kzoo.documents.markup import Markup  # noqa: E402

WORDS = {
    "A dog runs.": "Ein Hund rennt.",
    "A": "Ein",
    "dog": "Hund.",
    "runs.": "rennt.",
    "See the page & go": "Sieh die Seite & geh",
    "See": "Sieh",
    "the page": "Die Seite",
    "& go": "& geh",
    "the the page": "die die Seite",
    "the": "die",
    "page": "Seite",
}
KEPT = (
    "<code>A</code><pre>A</pre><script>A</script><!--A-->"
    '<p translate="no">A</p><p class="notranslate">A</p><p title="A"></p>'
)


def translated(html, target="de", words=WORDS):
    markup = Markup(html)
    return markup.translated({text: words.get(text, text) for text in markup.texts}, target)


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", ""),
        ("A dog runs.", "Ein Hund rennt."),
        ("A <b>dog</b> runs.", "Ein <b>Hund</b> rennt."),
        ("<p> A\n <b id=x>dog</b> runs.\n</p>", '<p> Ein <b id="x">Hund</b> rennt.\n</p>'),
        ('See <a href="?a=1&amp;b">the page</a> &amp; go',
         'Sieh <a href="?a=1&amp;b">die Seite</a> &amp; geh'),
        ("<b>A dog runs.</b>", "<b>Ein Hund rennt.</b>"),
        ("<i><b>A dog runs.</b></i>", "<i><b>Ein Hund rennt.</b></i>"),
        # Which of two, or one of several levels, is not clear: each piece is translated by itself.
        ("<i>the</i> the <b>page</b>", "<i>die</i> die <b>Seite</b>"),
        ("A <i><b>dog</b></i> runs.", "Ein <i><b>Hund</b></i> rennt."),
        ("A<br>A", "Ein<br/>Ein"),
        (KEPT, KEPT),
        ("<p>A<ul><li>dog<li>A</ul>", "<p>Ein<ul><li>Hund.<li>Ein</li></li></ul></p>"),
    ],
)  # fmt: skip
def test_elements_stand_on_their_words(html, expected):
    assert translated(html) == expected


def test_words_in_another_form_are_found():
    words = {
        "A man in a blue shirt sits.": "Ein Mann in einem blauen Hemd sitzt.",
        "A man in": "Ein Mann in",
        "a blue shirt": "Ein blaues Hemd.",
        "sits.": "sitzt.",
    }
    expected = "Ein Mann in einem <b>blauen Hemd</b> sitzt."
    assert translated("A man in <b>a blue shirt</b> sits.", "de", words) == expected


def test_a_language_without_spaces_has_no_edges_of_words():
    words = {"A dog.": "\u4e00\u53ea\u72d7\u3002", "A": "\u4e00\u53ea", "dog": "\u72d7", ".": "."}
    assert translated("A <b>dog</b>.", "zh", words) == "\u4e00\u53ea<b>\u72d7</b>\u3002"


def test_deep_elements_are_refused():
    assert "nested too deeply" in message_of(Markup, "<p>" * 5000 + "a")
