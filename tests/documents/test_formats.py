"""Documents of each format: capitals stand for translations, and all else is as it was."""

import json
import zipfile
from pathlib import Path

import pytest
from made_up import MadeUp, in_order

from kzoo.documents import translate_document

pytest.importorskip("bs4")
etree = pytest.importorskip("lxml.etree")

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
A = "http://schemas.openxmlformats.org/drawingml/2006/main"
TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"


@pytest.fixture
def capitals(tmp_path):
    """Function from a file to its translation, and what was asked for; nothing is left as it was."""

    def translated(path):
        capitals, output = MadeUp(str.upper, in_order), path.with_name(f"new{path.suffix}")
        assert translate_document(path, output, capitals, "en", "de") == []
        assert len(set(capitals.asked)) == len(capitals.asked)
        return output, capitals.asked

    return translated


def archive(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as new:
        for name, content in parts.items():
            new.writestr(name, content, zipfile.ZIP_STORED if name == "mimetype" else None)
    return path


def parts(path: Path) -> dict[str, bytes]:
    with zipfile.ZipFile(path) as opened:
        return {name: opened.read(name) for name in opened.namelist()}


def looks(paragraph) -> list:
    return [(run.text, run.bold) for run in paragraph.runs]


def test_docx_of_an_independent_writer(tmp_path, capitals):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    document.add_heading("A title")
    bold = document.add_paragraph("A do")
    bold.add_run("g ")  # as Word cuts runs
    bold.add_run("runs").bold = True
    bold.add_run(" on.")
    document.add_paragraph("Tab\there {name}\nA title")
    table = document.add_table(1, 2)
    table.cell(0, 0).text, table.cell(0, 1).text = "A cell", "42"
    document.sections[0].header.paragraphs[0].text = "The header"
    document.save(tmp_path / "a.docx")
    output, asked = capitals(tmp_path / "a.docx")
    new = docx.Document(output)
    title, bold, tabs = new.paragraphs
    assert (title.text, title.style.name) == ("A TITLE", "Heading 1")
    assert looks(bold) == [("A DOG ", None), ("RUNS", True), (" ON.", None)]
    assert tabs.text == "TAB\tHERE {name}\nA TITLE"
    assert [cell.text for cell in new.tables[0].rows[0].cells] == ["A CELL", "42"]
    assert new.sections[0].header.paragraphs[0].text == "THE HEADER"
    assert asked.count("A title") == 1 and "42" not in asked
    before, after = parts(tmp_path / "a.docx"), parts(output)
    assert list(before) == list(after)
    changed = {name for name in before if before[name] != after[name]}
    assert {name for name in changed if not name.startswith(("word/header", "word/footer"))} == {
        "word/document.xml"
    }


def test_no_break_spaces_stay_in_docx(tmp_path, capitals):
    docx = pytest.importorskip("docx")
    document = docx.Document()
    paragraph = document.add_paragraph("It is 10\xa0")
    paragraph.add_run("km").bold = True
    paragraph.add_run(" or 6\xa0miles.")
    document.save(tmp_path / "a.docx")
    (new,) = docx.Document(capitals(tmp_path / "a.docx")[0]).paragraphs
    assert looks(new) == [("IT IS 10\xa0", None), ("KM", True), (" OR 6\xa0MILES.", None)]


def test_what_a_paragraph_of_word_can_have(tmp_path, capitals):
    """Links, bookmarks, marks of spelling, deleted text, notes, fields and a text box in a run."""
    body = (
        '<w:p><w:pPr/><w:bookmarkStart w:id="1"/><w:r><w:rPr><w:lang w:val="en"/></w:rPr><w:t>See</w:t></w:r>'
        '<w:proofErr w:type="spellEnd"/><w:r><w:t xml:space="preserve"> the </w:t></w:r>'
        '<w:hyperlink r:id="7"><w:r><w:rPr><w:u/></w:rPr><w:t>page</w:t></w:r></w:hyperlink>'
        '<w:bookmarkEnd w:id="1"/><w:del><w:r><w:delText>gone</w:delText></w:r></w:del>'
        '<w:r><w:t>.</w:t><w:footnoteReference w:id="2"/></w:r>'
        "<w:r><w:drawing><w:txbxContent><w:p><w:r><w:t>A box</w:t></w:r></w:p></w:txbxContent></w:drawing>"
        "</w:r>"
        '<w:r><w:instrText>PAGE</w:instrText></w:r><w:ins w:id="3"><w:r><w:t>New</w:t></w:r></w:ins></w:p>'
    )
    xml = f'<w:document xmlns:w="{W}" xmlns:r="urn:r"><w:body>{body}</w:body></w:document>'
    path = archive(tmp_path / "a.docx", {"word/document.xml": xml, "word/media/x.png": "\x00\x01"})
    output, asked = capitals(path)
    root = etree.fromstring(parts(output)["word/document.xml"])
    names = [etree.QName(child).localname for child in root[0][0]]
    found = ["r", "hyperlink", "proofErr", "bookmarkEnd", "r", "r", "r", "r", "ins", "del"]
    assert names == ["pPr", "bookmarkStart", *found]
    assert "".join(root.itertext()) == "SEE THE PAGE.A BOXPAGENEWgone"
    assert root.find(".//{*}hyperlink").get("{urn:r}id") == "7" and len(root.findall(".//{*}u")) == 1
    assert {"See the page.", "A box", "New"} == {*asked}


def test_a_text_of_word_goes_on_where_nothing_is_shown(tmp_path, capitals):
    """Runs without text; and containers of runs that are seldom used."""
    run = "<w:r><w:t>{}</w:t></w:r>"
    body = (
        f"<w:p>{run.format('co')}<w:r><w:softHyphen/></w:r>{run.format('op')}<w:r><w:rPr/></w:r>"
        f"<w:r><w:lastRenderedPageBreak/></w:r><w:r><w:t/></w:r>{run.format('erate')}</w:p>"
        f'<w:p><w:customXml w:element="x"><w:customXmlPr/>{run.format("One")}</w:customXml></w:p>'
        f"<w:p><w:smartTag><w:smartTagPr/>{run.format('Two')}</w:smartTag></w:p>"
        f'<w:p><w:dir w:val="rtl">{run.format("Three")}</w:dir></w:p>'
        f'<w:p><w:bdo w:val="rtl">{run.format("Four")}</w:bdo></w:p>'
    )
    xml = f'<w:document xmlns:w="{W}"><w:body>{body}</w:body></w:document>'
    output, asked = capitals(archive(tmp_path / "a.docx", {"word/document.xml": xml}))
    assert asked == ["cooperate", "One", "Two", "Three", "Four"]
    root = etree.fromstring(parts(output)["word/document.xml"])
    assert ["".join(paragraph.itertext()) for paragraph in root[0]] == list(map(str.upper, asked))
    names = [etree.QName(child).localname for paragraph in root[0][1:] for child in paragraph[0]]
    assert names == ["customXmlPr", "r", "smartTagPr", "r", "r", "r"]


def test_a_bookmark_of_word_stays_on_its_number(tmp_path, capitals):
    """References show what it is on: they would show the whole caption."""
    number = '<w:fldSimple w:instr="SEQ"><w:r><w:t>1</w:t></w:r></w:fldSimple>'
    mark, end = '<w:bookmarkStart w:id="1"/>', '<w:bookmarkEnd w:id="1"/>'
    run, comment = "<w:r><w:t>{}</w:t></w:r>", "<w:r><w:commentReference/></w:r>"
    bodies = [
        f"{mark}{run.format('Figure')}{number}{end}{run.format(': A dog')}",
        f"{run.format('A dog')}{mark}{number}{end}",
        f"<w:commentRangeStart/>{run.format('A dog')}<w:commentRangeEnd/>{comment}{run.format('A dog')}",
    ]
    xml = f'<w:document xmlns:w="{W}">{"".join(f"<w:p>{body}</w:p>" for body in bodies)}</w:document>'
    output, _ = capitals(archive(tmp_path / "a.docx", {"word/document.xml": xml}))
    found = parts(output)["word/document.xml"].decode()
    for body in bodies:
        assert body.replace("Figure", "FIGURE").replace("A dog", "A DOG") in found


def test_pptx(tmp_path, capitals):
    body = (
        '<a:p><a:pPr/><a:r><a:rPr lang="en" dirty="0"/><a:t>A do</a:t></a:r>'
        '<a:r><a:rPr lang="de"/><a:t>g </a:t></a:r>'
        '<a:r><a:rPr b="1"/><a:t>runs</a:t></a:r><a:br/><a:r><a:t>Two</a:t></a:r>'
        '<a:fld type="slidenum"><a:t>3</a:t></a:fld><a:endParaRPr/></a:p>'
    )
    slide = f'<p:sld xmlns:p="urn:p" xmlns:a="{A}"><p:txBody>{body}</p:txBody></p:sld>'
    master = slide.replace("sld>", "sldMaster>").replace("<p:sld ", "<p:sldMaster ")
    names = ["ppt/slides/slide1.xml", "ppt/notesSlides/notesSlide1.xml", "ppt/slideMasters/slideMaster1.xml"]
    path = archive(tmp_path / "a.pptx", dict(zip(names, [slide, slide, master], strict=True)))
    output, asked = capitals(path)
    found = parts(output)
    for name in names[:2]:
        paragraph = etree.fromstring(found[name])[0][0]
        assert [etree.QName(child).localname for child in paragraph] == [
            *("pPr", "r", "r", "br", "r", "fld", "endParaRPr")
        ]
        assert "".join(paragraph.itertext()) == "A DOG RUNSTWO3"
        assert paragraph[2][0].get("b") == "1"
    assert found[names[2]].decode() == master
    assert asked == ["A dog runs", "Two"]


def test_odt(tmp_path, capitals):
    styles = (
        '<s:style s:name="T1"><s:text-properties o:rsid="1"/></s:style>'
        '<s:style s:name="T2"><s:text-properties fo:font-weight="bold"/></s:style>'
    )
    body = (
        '<t:tracked-changes><t:p>Gone</t:p></t:tracked-changes><t:h t:outline-level="1">A title</t:h>'
        '<t:p>A d<t:span t:style-name="T1">og</t:span> <t:span t:style-name="T2">runs</t:span><t:s/>on'
        "<t:note><t:note-citation>1</t:note-citation><t:note-body><t:p>A note</t:p></t:note-body></t:note>."
        "</t:p>"
        '<t:p>One<t:tab/>Two<t:line-break/><t:a x:href="u">Three</t:a></t:p>'
    )
    xml = (
        f'<d xmlns:t="{TEXT}" xmlns:s="urn:oasis:names:tc:opendocument:xmlns:style:1.0" xmlns:x="urn:x" '
        f'xmlns:o="http://openoffice.org/2009/office" xmlns:fo="urn:fo">{styles}{body}</d>'
    )
    given = {"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": xml, "x.png": "\x00"}
    output, asked = capitals(archive(tmp_path / "a.odt", given))
    root = etree.fromstring(parts(output)["content.xml"])
    assert [*map(etree.tounicode, root.iter("{*}p", "{*}h"))] and "A dog runs on." in asked
    text = etree.tounicode(root).partition("</s:style><t:tracked")[2]
    expected = xml.partition("</s:style><t:tracked")[2]
    for old, new in {
        "A title": "A TITLE",
        'A d<t:span t:style-name="T1">og</t:span> ': "A DOG ",
        "runs": "RUNS",
        "<t:s/>on": " ON",
        "A note": "A NOTE",
        "One": "ONE",
        "Two": "TWO",
        "Three": "THREE",
    }.items():
        expected = expected.replace(old, new)
    assert text == expected
    with zipfile.ZipFile(output) as new:  # a reader knows the format by it
        first = new.infolist()[0]
    assert (first.filename, first.compress_type) == ("mimetype", zipfile.ZIP_STORED)


def test_epub(tmp_path, capitals):
    page = (
        '<?xml version="1.0" encoding="utf-8"?>\n<!DOCTYPE html>\n<html xmlns="http://www.w3.org/1999/xhtml" '
        'xmlns:epub="http://www.idpf.org/2007/ops"><head><title>A title</title></head>'
        '<body epub:type="bodymatter"><p>A&nbsp;<b>dog</b> &amp; 2&lt;3<br/>runs</p><svg viewBox="0 0 1 1"/>'
        '<code>x</code><p class="a notranslate">x</p><p class="notranslated">Two</p></body></html>'
    )
    ncx = "<ncx><docAuthor><text>Me</text></docAuthor><navLabel><text>A title</text></navLabel></ncx>"
    given = {
        "mimetype": "application/epub+zip",
        "META-INF/container.xml": "<c/>",
        "a.xhtml": page,
        "t.ncx": ncx,
    }
    output, asked = capitals(archive(tmp_path / "a.epub", given))
    found = parts(output)
    assert found["a.xhtml"].decode().strip() == (
        page.replace("A title", "A TITLE")
        .replace("A&nbsp;<b>dog</b> &amp; 2&lt;3", "A <b>DOG</b> &amp; 2&lt;3")
        .replace("runs", "RUNS")
        .replace("Two", "TWO")
    )
    assert "<text>Me</text></docAuthor><navLabel><text>A TITLE</text>" in found["t.ncx"].decode()
    assert asked.count("A title") == 1


PO = r"""# A comment
msgid ""
msgstr ""
"Language: de\n"
"Content-Type: text/plain; charset=UTF-8\n"
"Plural-Forms: nplurals=3; plural=(n != 1);\n"

#: a.c:3
#, c-format{}
msgid ""
"A <b>dog</b> runs %s.\n"
"Two"
msgstr {}

#, c-format{}
msgid "%d dog"
msgid_plural "%d dogs"
msgstr[0] "{}"
msgstr[1] "{}"
msgstr[2] "{}"

msgctxt "menu"
msgid "Open"
msgstr "Auf"
"""
XLIFF1 = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:1.2" version="1.2">
  <file source-language="en" target-language="de" original="a"><body>
    <trans-unit id="1"><source>A <g id="1">dog</g> runs<x id="2"/></source>{}</trans-unit>
    <trans-unit id="2"><source>Done</source><target state="final">Fertig</target></trans-unit>
    <trans-unit id="3" translate="no"><source>Kept</source></trans-unit>
    <trans-unit id="4"><source>One. Two.</source>
      <seg-source><mrk mtype="seg" mid="1">One.</mrk> <mrk mtype="seg" mid="2">Two.</mrk></seg-source>{}
    </trans-unit>
    <trans-unit id="5"><source>See <mrk mtype="protected">Top</mrk></source>{}</trans-unit>
  </body></file>
</xliff>"""
XLIFF2 = """<?xml version='1.0' encoding='UTF-8'?>
<xliff xmlns="urn:oasis:names:tc:xliff:document:2.0" version="2.0" srcLang="en"{}><file id="f">
  <unit id="1"><segment{}><source>A <pc id="1">dog</pc> <ph id="2"/></source>{}</segment></unit>
  <unit id="2"><segment{}><source>See <mrk id="3" translate="no">Top</mrk></source>{}</segment></unit>
</file></xliff>"""
JSON = """{{
    "title": "{}", "n": 1.50, "a\\"b:c": ["{}", true, "{}"],
  "deep": {{"{}": "{}", "url": "https://a.b/c"}}
}}
"""
SRT = "1\r\n00:00:01,000 --> 00:00:02,500\r\n{}\r\n\r\n2\r\n00:00:03,000 --> 00:00:04,000\r\n{}\r\n"
VTT = "WEBVTT - {}\n\nNOTE A note\n\nid\n00:01.000 --> 00:02.000 align:start\n{}\n"
HTML = """<html lang="en"><head><meta charset="utf-8"/><title>{}</title><style>p {{}}</style></head>
<body><p class="a">{}</p><script>let a = 1 < 2;</script></body></html>
"""
# The name of a file, its form, and what is in the original's and in the translation's places.
FILES = [
    ("a.po", PO, ["", '""', "", "", "", ""],
     [", fuzzy", '""\n"A <b>DOG</b> RUNS %s.\\n"\n"TWO"', ", fuzzy", "%d DOG", "%d DOGS", "%d DOGS"]),
    ("a.xlf", XLIFF1, ["", "<target/>", ""],
     ['<target state="needs-review-translation">A <g id="1">DOG</g> RUNS<x id="2"/></target>',
      '<target state="needs-review-translation"><mrk mtype="seg" mid="1">ONE.</mrk> '
      '<mrk mtype="seg" mid="2">TWO.</mrk></target>',
      '<target state="needs-review-translation">SEE <mrk mtype="protected">Top</mrk></target>']),
    ("a.xliff", XLIFF2, ["", "", "", "", ""],
     [' trgLang="de"', ' state="translated"', '<target>A <pc id="1">DOG</pc> <ph id="2"/></target>',
      ' state="translated"', '<target>SEE <mrk id="3" translate="no">Top</mrk></target>']),
    ("a.json", JSON, ["A title \\ud83d", "One: two", "Caf\\u00e9 {{n}}", "key", "<b>A</b> dog"],
     ["A TITLE \ufffd", "ONE: TWO", "CAFÉ {{n}}", "key", "<b>A</b> DOG"]),
    ("a.srt", SRT, ["A <i>dog</i>\r\nruns here", "- Who?\r\n- A dog."],
     ["A <i>DOG</i>\r\nRUNS HERE", "- WHO?\r\n- A DOG."]),
    ("a.vtt", VTT, ["A title", "<v Bob>A <c.red>dog</c> runs"], ["A title", "<v Bob>A <c.red>DOG</c> RUNS"]),
    ("a.html", HTML, ["A title", 'A <b id="x">dog</b> &amp; runs'],
     ["A TITLE", 'A <b id="x">DOG</b> &amp; RUNS']),
]  # fmt: skip


@pytest.mark.parametrize(("name", "form", "old", "new"), FILES, ids=[name for name, *_ in FILES])
def test_all_but_the_texts_stays_as_it_is_written(tmp_path, capitals, name, form, old, new):
    if name == "a.po":
        pytest.importorskip("translate")
    path = tmp_path / name
    path.write_bytes(form.format(*old).encode())
    output, _ = capitals(path)
    assert output.read_bytes().decode().strip() == form.format(*new).strip()
    if name.endswith("json"):
        assert json.loads(output.read_text("utf-8"))["n"] == 1.5
