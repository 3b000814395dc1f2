"""Notes and code within a sentence: it is translated whole, and they stay behind their words."""

import zipfile

import pytest
from made_up import MadeUp

from kzoo.documents import translate_document

pytest.importorskip("bs4")
pytest.importorskip("lxml")

HTML = {
    "Two men <code>a</code> sit": "sit men <code>a</code> Two",
    "Two men <code>a</code>, sit here": "here sit men <code>a</code>, Two",
    '<b>big dog</b><img src="a"/> runs': 'runs <b>dog big</b><img src="a"/>',
    "Two men<sup>1</sup> sit": "sit men<sup>1</sup> Two",
    'Two men<a href="#1"><sup>[1]</sup></a> sit': 'sit men<a href="#1"><sup>[1]</sup></a> Two',
    'Two men<a href="#1">1</a> sit': 'sit men<a href="#1">1</a> Two',
    'Two men,<a href="#1">†</a> sit': 'sit men,<a href="#1">†</a> Two',
    'Two men <a href="#1">1</a> sit': 'sit <a href="#1">1</a> men Two',  # a word of the sentence
    '两只狗<a href="#1">[1]</a> 跑': '跑 两只狗<a href="#1">[1]</a>',
    "Two men. <code>a</code> A dog sits.": "men. <code>a</code> Two sits. dog A",
    'Two <a id="1"></a>men<span id="2"></span> sit': 'sit men<span id="2"></span> Two<a id="1"></a>',
    "<b>big dog<sup>1</sup></b> runs": "runs <b>dog<sup>1</sup> big</b>",
    "<i>big <b>dog <code>a</code></b></i> runs": "runs <i><b>dog <code>a</code></b> big</i>",
    "<span>Two men</span><sup>1</sup><span> sit</span>": "<span>sit</span> <span>men Two</span><sup>1</sup>",
    "Two men<sup>1</sup>.": "men<sup>1</sup>. Two",  # with the mark, or the model would write one before it
    "Two men<sup>1</sup> <b>sit</b>": "<b>sit</b> men<sup>1</sup> Two",
    # Where they end a text: at its ends, side by side, within a word, and behind a mark alone.
    "<code>a</code> Two men <code>b</code>": "<code>a</code> men Two <code>b</code>",
    "Two men <code>a</code><code>b</code> sit": "men Two <code>a</code><code>b</code> sit",
    "Two <code>man</code>s sit": "Two <code>man</code>sit s",
    "Two <code>man</code>-like cats": "Two <code>man</code>cats -like",
    "Two men ( <code>a</code> sit": "( men Two <code>a</code> sit",
}


def backwards(path, output):
    """Write a document's translation, in which a sentence's words are backwards."""
    aligned = MadeUp(
        lambda text: " ".join(text.split()[::-1]), lambda source, target: range(len(target))[::-1]
    )
    assert translate_document(path, output, aligned, "en", "de") == []


@pytest.mark.parametrize("html", HTML)
def test_code_and_pictures_in_html(tmp_path, html):
    path, output = tmp_path / "a.html", tmp_path / "b.html"
    path.write_text(f"<p>{html}</p>", "utf-8")
    backwards(path, output)
    assert output.read_text("utf-8") == f"<p>{HTML[html]}</p>"


def test_a_link_on_a_number_behind_a_chinese_word_is_a_word(tmp_path):
    (tmp_path / "a.html").write_text('<p>共有<a href="#1">3</a>只狗</p>', "utf-8")
    translator = MadeUp(lambda text: f"{text}!", lambda source, target: range(len(target)))
    translate_document(tmp_path / "a.html", tmp_path / "b.html", translator, "zh", "zh")
    assert translator.asked == ["共有3只狗"]
    assert (tmp_path / "b.html").read_text("utf-8") == '<p>共有<a href="#1">3</a>只狗!</p>'


W = '<w:p xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main">'
RUN, NOTE = '<w:r><w:t xml:space="preserve">{}</w:t></w:r>', '<w:r><w:footnoteReference w:id="1"/></w:r>'
BY_HAND = '<w:r><w:rPr><w:vertAlign w:val="superscript"/></w:rPr><w:t>1</w:t></w:r>'
BOOKMARK, BOOKMARK_END = '<w:bookmarkStart w:name="a" w:id="1"/>', '<w:bookmarkEnd w:id="1"/>'
T = '<t:p xmlns:t="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
ODT_NOTE = "<t:note><t:note-body><t:p>{}</t:p></t:note-body></t:note>"
CHANGE, MARK, END = (
    '<t:change t:change-id="1"/>',
    '<t:bookmark-start t:name="a"/>',
    '<t:bookmark-end t:name="a"/>',
)


@pytest.mark.parametrize(
    ("name", "part", "old", "new"),
    [
        ("a.docx", "word/document.xml", *(
            f"{W}{RUN.format('Two men ')}{note}{RUN.format(' sit')}</w:p>",
            f"{W}{RUN.format('sit men ')}{note}{RUN.format(' Two')}</w:p>",
        ))
        for note in (NOTE, BY_HAND)
    ]
    + [
        ("a.docx", "word/document.xml", *(
            f"{W}{RUN.format('Two ')}{BOOKMARK}{RUN.format('men')}{BOOKMARK_END}{RUN.format(' sit')}</w:p>",
            f"{W}{RUN.format('sit ')}{BOOKMARK}<w:r><w:t>men</w:t></w:r>{BOOKMARK_END}"
            f"{RUN.format(' Two')}</w:p>",
        )),
        ("a.docx", "word/document.xml", *(
            f"{W}{RUN.format('Two men ')}{BOOKMARK}{BOOKMARK_END}{RUN.format('sit')}</w:p>",
            f"{W}{BOOKMARK}<w:r><w:t>sit men Two</w:t></w:r>{BOOKMARK_END}</w:p>",
        )),
        ("a.docx", "word/document.xml", *(
            f"{W}{RUN.format('Two ')}{BOOKMARK}{RUN.format('men')}{NOTE}{BOOKMARK_END}"
            f"{RUN.format(' sit')}</w:p>",
            f"{W}{RUN.format('sit ')}{BOOKMARK}<w:r><w:t>men</w:t></w:r>{NOTE}{BOOKMARK_END}"
            f"{RUN.format(' Two')}</w:p>",
        )),
        ("a.odt", "content.xml", *(
            f"{T}Two men{ODT_NOTE.format('A note')} sit</t:p>",
            f"{T}sit men{ODT_NOTE.format('note A')} Two</t:p>",
        )),
        ("a.odt", "content.xml", *(
            f"{T}Two {CHANGE}men {MARK}sit{END} here</t:p>",
            f"{T}here {MARK}sit{END} men Two{CHANGE}</t:p>",
        )),
    ],
)  # fmt: skip
def test_notes(tmp_path, name, part, old, new):
    path, output = tmp_path / name, tmp_path / f"new-{name}"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(part, old)
    backwards(path, output)
    with zipfile.ZipFile(output) as archive:
        assert archive.read(part).decode().endswith(new)
