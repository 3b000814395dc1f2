"""Messages of programs: the forms of ICU's, and the markup that XLIFF has as pairs of elements or as text."""

import json

import pytest
from made_up import MadeUp, in_order
from message_of import message_of

from kzoo.documents import Document, translate_document

pytest.importorskip("bs4")
etree = pytest.importorskip("lxml.etree")


def translated(path, content):
    """Return the translation of a file, in capitals, and what was asked for."""
    path.write_text(content, "utf-8")
    capitals, output = MadeUp(str.upper, in_order), path.with_name(f"new-{path.name}")
    assert translate_document(path, output, capitals, "en", "de") == []
    return output.read_text("utf-8"), capitals.asked


ICU = {
    "{n, plural, =0 {No dogs} one {# dog} other {# dogs}}": (
        "{n, plural, =0 {NO DOGS} one {# DOG} other {# DOGS}}"
    ),
    "You and {n,plural,offset:1 one{a dog} other{{m} dogs}}.": (
        "YOU AND {n,plural,offset:1 one{A DOG} other{{m} DOGS}}."
    ),
    "{who, select, male {{n, selectordinal, one {His #st dog} other {His}}} other {<b>A</b> {what}}} ran": (
        "{who, select, male {{n, selectordinal, one {HIS #st DOG} other {HIS}}} other {<b>A</b> {what}}} RAN"
    ),
}


@pytest.mark.parametrize("message", ICU)
def test_forms_of_icu(tmp_path, message):
    found, _ = translated(tmp_path / "a.json", json.dumps({"key": message}))
    assert json.loads(found)["key"] == ICU[message]


XLIFF1 = '<xliff version="1.2"><file source-language="en" target-language="de"><body><trans-unit id="1">{}'
XLIFF2 = '<xliff version="2.0" srcLang="en" trgLang="de"><file id="1"><unit id="1"><segment>{}'
ENDS = {XLIFF1: "</trans-unit></body></file></xliff>", XLIFF2: "</segment></unit></file></xliff>"}


@pytest.mark.parametrize(
    ("form", "source", "target", "texts"),
    [
        (
            XLIFF1,
            'A <bpt id="1">&lt;b></bpt>dog<ept id="1"/> <bx id="2"/>runs<ex id="3" rid="2"/>',
            'A <bpt id="1">&lt;b></bpt>DOG<ept id="1"/> <bx id="2"/>RUNS<ex id="3" rid="2"/>',
            ["A dog runs"],
        ),
        (
            XLIFF2,
            'A <sc id="1"/>dog<ec startRef="1"/> runs<ec isolated="yes" id="2"/>',
            'A <sc id="1"/>DOG<ec startRef="1"/> RUNS<ec isolated="yes" id="2"/>',
            ["A dog runs"],
        ),
        (
            XLIFF1,
            '<bpt id="1"/>A <bpt id="2"/>dog<ept id="1"/> runs<ept id="2"/>.',
            '<bpt id="1"/>A <bpt id="2"/>DOG<ept id="1"/> RUNS<ept id="2"/>.',
            ["A", "dog"],
        ),
        (
            XLIFF1,
            "&lt;p&gt;A &lt;b&gt;dog&lt;/b&gt; runs.&lt;/p&gt;&lt;p&gt;Enter &lt;name&gt;&lt;/p&gt;",
            "&lt;p&gt;A &lt;b&gt;DOG&lt;/b&gt; RUNS.&lt;/p&gt;&lt;p&gt;ENTER &lt;name&gt;&lt;/p&gt;",
            ["A dog runs.", "Enter"],
        ),
        (XLIFF1, "if a &lt;b and c&gt; dog", "IF A &lt;B AND C&gt; DOG", ["if a <b and c> dog"]),
        (
            XLIFF1,
            '&lt;a href="b" c&gt;A dog&lt;/a &gt; &lt;b&gt;runs&lt;/b&gt;&lt;br /&gt;&lt;my-tag x=1/&gt;here',
            '&lt;a href="b" c&gt;A DOG&lt;/a &gt; &lt;b&gt;RUNS&lt;/b&gt;&lt;br /&gt;&lt;my-tag x=1/&gt;HERE',
            ["A dog runs", "here"],
        ),
        (
            XLIFF1,
            '{n, plural, =1 {One <x id="2"/>} other {<g id="1">Two</g> dogs}}',
            '{n, plural, =1 {ONE <x id="2"/>} other {<g id="1">TWO</g> DOGS}}',
            ["One", "Two dogs"],
        ),
        (
            XLIFF1,
            'Hello <x id="1"/>, a dog <g id="2">runs</g>',
            'HELLO <x id="1"/>, A DOG <g id="2">RUNS</g>',
            ["Hello, a dog runs"],
        ),
        (
            XLIFF1,  # Angular's
            'A <x id="START_TAG_SPAN_1"/>dog <x id="START_BOLD_TEXT"/>runs<x id="CLOSE_BOLD_TEXT"/>'
            '<x id="CLOSE_TAG_SPAN"/> to <x id="INTERPOLATION"/>',
            'A <x id="START_TAG_SPAN_1"/>DOG <x id="START_BOLD_TEXT"/>RUNS<x id="CLOSE_BOLD_TEXT"/>'
            '<x id="CLOSE_TAG_SPAN"/> TO <x id="INTERPOLATION"/>',
            ["A dog runs to"],
        ),
        (
            XLIFF1,
            'Hello <x id="1"/>, <ph id="2"/>a dog <x id="3" ctype="lb"/>',
            'HELLO <x id="1"/>, <ph id="2"/>A DOG <x id="3" ctype="lb"/>',
            ["Hello", "a dog"],
        ),
        (
            XLIFF1,
            '狗<x id="1"/>。猫（<x id="2"/>），「<x id="3"/>」鸟',
            '狗<x id="1"/>。猫（<x id="2"/>），「<x id="3"/>」鸟',
            ["狗", "猫", "鸟"],
        ),
        (
            XLIFF2,
            'A dog <ph id="1" equiv="&lt;br/>"/> runs',
            'A DOG <ph id="1" equiv="&lt;br/>"/> RUNS',
            ["A dog", "runs"],
        ),
    ],
)  # fmt: skip
def test_markup_in_xliff(tmp_path, form, source, target, texts):
    content = form.format(f"<source>{source}</source>") + ENDS[form]
    found, asked = translated(tmp_path / "a.xlf", content)
    new = etree.fromstring(found.encode()).find(".//{*}target")
    expected = etree.fromstring(f"<target>{target}</target>")
    new.attrib.clear()
    assert etree.tostring(new, method="c14n", with_tail=False) == etree.tostring(expected, method="c14n")
    assert set(texts) <= set(asked)


SEGMENTS = '<mrk mtype="seg" mid="1">{}</mrk> <mrk mtype="seg" mid="2">{}</mrk>'


@pytest.mark.parametrize(
    ("target", "state", "expected"),
    [
        (("", ""), "", ("A DOG.", "A CAT.")),
        (("", "Eine <g id='1'>Katze</g>."), "", ("A DOG.", 'Eine <g id="1">Katze</g>.')),
        (("", "<x id='1'/>"), "", ("A DOG.", '<x id="1"/>')),
        (("A dog.", "A cat."), ' state="new"', ("A DOG.", "A CAT.")),
    ],
)
def test_segments_without_a_translation(tmp_path, target, state, expected):
    """Those that have one keep it."""
    parts = f"<source>A dog. A cat.</source><seg-source>{SEGMENTS.format('A dog.', 'A cat.')}</seg-source>"
    parts += f"<target{state}>{SEGMENTS.format(*target)}</target>"
    found, _ = translated(tmp_path / "a.xlf", XLIFF1.format(parts) + ENDS[XLIFF1])
    assert f">{SEGMENTS.format(*expected)}</target>" in found


@pytest.mark.parametrize("target", ['<x id="1"/>', SEGMENTS.format("Ein Hund.", '<x id="1"/>')])
def test_a_translation_may_be_made_of_elements_alone(tmp_path, target):
    unit = f'<source>Mr <x id="1"/></source><target state="final">{target}</target>'
    found, asked = translated(tmp_path / "a.xlf", XLIFF1.format(unit) + ENDS[XLIFF1])
    assert unit in found and not asked


@pytest.mark.parametrize(("space", "target"), [("preserve", "A DOG\n  A CAT"), ("default", "A DOG A CAT")])
def test_line_ends_of_xliff(tmp_path, space, target):
    unit = f'<source xml:space="{space}">A dog\n  a cat</source>'
    found, _ = translated(tmp_path / "a.xlf", XLIFF1.format(unit) + ENDS[XLIFF1])
    assert f">{target}</target>" in found


@pytest.mark.parametrize(("inner", "asked"), [("", []), (' translate="yes"', ["A dog"])])
def test_the_nearest_value_says_what_is_translated(tmp_path, inner, asked):
    unit = f'<group translate="no"><trans-unit id="2"{inner}><source>A dog</source></trans-unit></group>'
    content = XLIFF1.format("").replace('<trans-unit id="1">', unit) + "</body></file></xliff>"
    assert translated(tmp_path / "a.xlf", content)[1] == asked


def test_a_document_s_languages_are_given_or_its_own(tmp_path):
    path = tmp_path / "a.xlf"
    path.write_text(f"{XLIFF1.format('<source>one</source>')}{ENDS[XLIFF1]}", "utf-8")
    document = Document(path)
    assert document.direction(None, None) == ("en", "de")
    assert document.direction("en-GB", None) == ("en-GB", "de")
    output = tmp_path / "b.xlf"
    error = message_of(translate_document, path, output, MadeUp(str.upper), "en", "fr")
    assert "a.xlf names the language de, not fr" in error and not output.exists()
