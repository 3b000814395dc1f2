"""The texts of HTML, and its elements in the translations; the translations are given."""

import sys

import pytest
from made_up import MadeUp, in_order
from message_of import message_of

pytest.importorskip("bs4")

from kzoo.documents.inline import CLOSE, NUMBERED, OPEN  # noqa: E402
from kzoo.documents.markup import Markup  # noqa: E402

WORDS = {
    "A dog runs.": "Ein Hund rennt.",
    "A": "Ein",
    "(A)": "(Ein)",
    "A ?": "Was ?",
    "¿ A": "¿ Wie",
    "dog": "Hund.",
    "runs.": "rennt.",
    "See the page & go": "Sieh die Seite & geh",
    "See": "Sieh",
    "the page": "die Seite.",
    "& go": "& geh",
    "Today a big dog runs.": "Ein großer Hund rennt heute.",
    "Two dogs.": "Zwei Hunde.",
}
KEPT = (
    "<code>A</code><pre>A</pre><script>A</script><!--A-->"
    '<p translate="no">A</p><p class="notranslate">A</p><p title="A"></p>'
)
BOLD_10 = f"{OPEN}0{NUMBERED}10{CLOSE}"


def translated(html, aligned, words=WORDS):
    markup, translator = Markup(html), MadeUp(words.__getitem__, aligned)
    return markup.translated(dict(zip(markup.texts, translator.texts(markup.texts, "en", "de"), strict=True)))


@pytest.mark.parametrize("aligned", [in_order, None])
@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("", ""),
        ("A dog runs.", "Ein Hund rennt."),
        ("A <b>dog</b> runs.", "Ein <b>Hund</b> rennt."),
        ("<p> A\n <b id=x> dog</b> runs.\n</p>", '<p> Ein <b id="x">Hund</b> rennt.\n</p>'),
        ('See <a href="?a=1&amp;b">the page</a> &amp; go',
         'Sieh <a href="?a=1&amp;b">die Seite</a> &amp; geh'),
        ("<b>A dog runs.</b>", "<b>Ein Hund rennt.</b>"),
        ("<i><b>A dog runs.</b></i>", "<i><b>Ein Hund rennt.</b></i>"),
        ("A <i><b>dog</b></i> runs.", "Ein <i><b>Hund</b></i> rennt."),
        ("<i>A <b>dog</b></i> runs.", "<i>Ein <b>Hund</b></i> rennt."),
        ("<i>A</i> <b>dog</b> runs.", "<i>Ein</i> <b>Hund</b> rennt."),
        ("A<br>A", "Ein<br>Ein"),
        ('A (<img>). A "<img>" A', 'Ein (<img>). Ein "<img>" Ein'),
        ("A<br>(A)<br>A", "Ein<br>(Ein)<br>Ein"),
        ("A ? <br>¿ A", "Was ? <br>¿ Wie"),
        ("<b>A<br/>A</b>", "<b>Ein<br/>Ein</b>"),
        ("<B>A<BR/>A</B>", "<b>Ein<br/>Ein</b>"),
        ("<input title='\"q\"' value=a disabled> >\xa0<P>A",
         "<input title='\"q\"' value=\"a\" disabled=\"\"> &gt;&nbsp;<p>Ein</p>"),
        ("<br><svg><path/></svg>A<br>", "<br><svg><path></path></svg>Ein<br>"),
        ('<meta charset="UTF-8">A', '<meta charset="UTF-8">Ein'),
        ("<ul>\n\n  <li>A</li>\n\t</ul>  \n", "<ul>\n\n  <li>Ein</li>\n\t</ul>  \n"),
        ('<p title="x" class="b  a" id="c">A</p>&nbsp;&copy; 1 &gt; 0',
         '<p title="x" class="b  a" id="c">Ein</p>&nbsp;© 1 &gt; 0'),
        ("\ufdd0A \ufdd2<b>dog</b> runs.", "Ein <b>Hund</b> rennt."),
        (KEPT, KEPT),
        ("<p>A<ul><li>A<li>A dog runs.</ul>", "<p>Ein</p><ul><li>Ein</li><li>Ein Hund rennt.</li></ul>"),
    ],
)  # fmt: skip
def test_elements_stand_on_their_words(html, expected, aligned):
    assert translated(html, aligned) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<p>A<p>A<h1>A</h1>", "<p>A</p><p>A</p><h1>A</h1>"),
        ("<ul><li>A<ul><li>A<li>A</ul><li><p>A<li>A</ul>",
         "<ul><li>A<ul><li>A</li><li>A</li></ul></li><li><p>A</p></li><li>A</li></ul>"),
        ("<dl><dt>A<dd>A<dt>A</dl>", "<dl><dt>A</dt><dd>A</dd><dt>A</dt></dl>"),
        ("<table><tr><td>A<th>A<tr><td><table><tr><td>A</table></table>",
         "<table><tr><td>A</td><th>A</th></tr><tr><td><table><tr><td>A</td></tr></table></td></tr></table>"),
        ("<select><option>A<option>A</select>", "<select><option>A</option><option>A</option></select>"),
        ("<p><b>A<p>A</b>", "<p><b>A<p>A</p></b></p>"),
    ],
)  # fmt: skip
def test_end_tags_are_where_browsers_put_them(html, expected):
    """All but the last, where browsers make the second paragraph bold, too."""
    assert Markup(html).translated({"A": "A"}) == expected


def test_long_lists_without_end_tags_are_not_nested():
    html = "<ul>" + "<li>A" * 2000 + "</ul>"
    assert Markup(html).translated({"A": "A"}) == html.replace("<li>A", "<li>A</li>")


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("Today a <b>big</b> dog runs.", "Ein <b>großer</b> Hund rennt heute."),
        ("<b>Today</b> a <i>big dog</i> runs.", "Ein <i>großer Hund</i> rennt <b>heute</b>."),
        ("Today <i>a <b>big</b> dog</i> runs.", "<i>Ein <b>großer</b> Hund</i> rennt heute."),
        ("Today a big dog <u>runs.</u>", "Ein großer Hund <u>rennt</u> heute."),
        ("A dog runs. <b>Two</b> dogs.", "Ein Hund rennt. <b>Zwei</b> Hunde."),
        ("A dog <b>runs. Two</b> dogs.", "Ein Hund <b>rennt. Zwei</b> Hunde."),
    ],
)
def test_elements_follow_words_to_other_places(html, expected):
    order = {5: [1, 2, 3, 4, 0]}
    assert translated(html, lambda source, target: order.get(len(source), range(len(target)))) == expected


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("Mail <a>a@b.org</a> now, <b>{{name}}</b>!", "Jetzt an <a>a@b.org</a>, <b>{{name}}</b>!"),
        ("<b>Mail</b> a@b.org now, <i>{{name}}!</i>", "Jetzt <b>an</b> a@b.org, <i>{{name}}!</i>"),
    ],
)
def test_elements_on_placeholders_stand_on_them(html, expected):
    """Whatever the attention says of these."""
    words = {"Mail a@b.org now, {{name}}!": "Jetzt an a@b.org, {{name}}!"}
    assert translated(html, lambda *_: [2, 0, 3, 1], words) == expected


def test_an_element_whose_words_share_a_translation_is_translated_apart():
    words = {"good bye": "Wiedersehen", "good": "gut", "bye": "tschüs"}
    assert translated("<i>good</i> <b>bye</b>", lambda *_: [0], words) == "<i>gut</i> <b>tschüs</b>"


@pytest.mark.parametrize(
    ("html", "translation", "expected"),
    [
        ("<p>It is 10&nbsp;km.</p>", "Es sind 10 km.", "<p>Es sind 10&nbsp;km.</p>"),
        ("10&nbsp;000\u202fmiles to go", "Noch 10 000 Meilen", "Noch 10&nbsp;000\u202fMeilen"),
        ("<b>10</b>&nbsp;km and 5&nbsp;%", BOLD_10 + " km und 5 %", "<b>10</b>&nbsp;km und 5&nbsp;%"),
        ("In fig.&nbsp;3, Ann&nbsp;Lee", "In Abb. 3 Ann Lee", "In Abb.&nbsp;3 Ann&nbsp;Lee"),
        ("«\xa0Oui\xa0!\xa0»", "« Ja ! »", "«&nbsp;Ja&nbsp;!&nbsp;»"),
        ("Mr.&nbsp;Lee is in. He waits.", "Lee ist da. Er wartet.", "Lee ist da. Er wartet."),
        ("A&nbsp;dog", "Ein Hund", "Ein Hund"),
        ("<b>10</b>&nbsp;km and 10&nbsp;km.", BOLD_10 + " km.", "<b>10</b>&nbsp;km."),
        ("10 km", "10 km", "10 km"),
    ],
)
def test_no_break_spaces_stay_beside_what_they_were_beside(html, translation, expected):
    markup = Markup(html)
    (text,) = markup.texts
    assert markup.translated({text: translation}) == expected


@pytest.mark.parametrize("gap", ["", "\n", " \n\n"])
def test_the_lines_behind_a_doctype_stay(gap):
    page = f"<!DOCTYPE html>{gap}<p></p>"
    assert Markup(page).translated({}) == page


def test_xml_stays_xml():
    pytest.importorskip("lxml")
    page = '<?xml version="1.0" encoding="utf-8"?>\n<p id="b" class="a"><b></b>\xa0</p>'
    assert Markup(page, "xml").translated({}) == page.replace("<b></b>", "<b/>")


def test_deep_elements_are_refused():
    assert "nested too deeply" in message_of(Markup, "<div>" * 5000 + "a")


@pytest.mark.parametrize(
    ("begin", "end"),
    [
        ("<sup>", "</sup>"),
        ("<sup>", "<img></sup>"),  # the picture ends the text
        ("<b>a<img>", "</b>"),
    ],
)
def test_the_work_grows_with_the_levels_alone(begin, end):
    def calls(levels):
        """Return the number of calls of the functions that look at elements."""
        modules = "kzoo.documents.anchors", "kzoo.documents.inline", "kzoo.documents.markup", "bs4.element"
        count, files = 0, {sys.modules[name].__file__ for name in modules}

        def called(frame, event, _):
            nonlocal count
            count += event == "call" and frame.f_code.co_filename in files

        sys.setprofile(called)
        try:
            Markup("text " + begin * levels + "1a" + end * levels)
        finally:
            sys.setprofile(None)
        return count

    assert calls(80) < 3 * calls(40)
