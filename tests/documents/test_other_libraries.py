"""Documents that other libraries write: they read the translation, and find the structure of the original.

Capitals stand for translations.
"""

import pytest
from made_up import MadeUp, in_order

from kzoo.documents import translate_document

pytest.importorskip("bs4")
pytest.importorskip("lxml")

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d4944415478da63fcffff3f0300"
    "06000301a7d5c5d30000000049454e44ae426082"
)


@pytest.fixture
def picture(tmp_path):
    (tmp_path / "dot.png").write_bytes(PNG)
    return str(tmp_path / "dot.png")


def in_capitals(path):
    """Return the path of a document's translation, of which nothing was left as it was."""
    output = path.with_name(f"new{path.suffix}")
    assert translate_document(path, output, MadeUp(str.upper, in_order), "en", "de") == []
    return output


def upper(found):
    """Return what was found, with all strings in capitals."""
    if isinstance(found, str):
        return found.upper()
    if isinstance(found, dict):
        return {key: upper(value) for key, value in found.items()}
    return type(found)(map(upper, found)) if isinstance(found, list | tuple) else found


def test_docx(tmp_path, picture):
    docx = pytest.importorskip("docx")
    from docx.enum.text import WD_BREAK

    document = docx.Document()
    document.core_properties.title = "The properties"
    document.add_heading("Instructions for use", 0)
    document.add_paragraph("Read this first.", style="Intense Quote")
    for text in ("Open the box", "Take out the lamp"):
        document.add_paragraph(text, style="List Number")
    mixed = document.add_paragraph("Press ")
    mixed.add_run("the red button").bold = True
    mixed.add_run(" and ")
    mixed.add_run("wait").italic = True
    mixed.add_run(".")
    mixed.add_run().add_break(WD_BREAK.PAGE)
    marked = document.add_paragraph().add_run("A remark")
    document.add_comment(marked, text="Is it right?", author="Ann")
    document.add_picture(picture)
    table = document.add_table(3, 3, style="Table Grid")
    table.cell(0, 0).merge(table.cell(0, 2)).text = "A wide cell"
    for column, text in enumerate(("Part", "12 mm", "")):
        table.cell(1, column).text = text
    inner = table.cell(2, 2).add_table(1, 1)
    inner.cell(0, 0).text = "Within"
    section = document.add_section()
    section.header.is_linked_to_previous = False
    section.header.paragraphs[0].text = "The second header"
    section.footer.paragraphs[0].text = "Page"
    section.first_page_header.paragraphs[0].text = "First"
    document.save(tmp_path / "a.docx")

    def described(path):
        opened = docx.Document(path)

        def paragraph(one):
            runs = [(run.text.strip(), run.bold, run.italic) for run in one.runs if run.text.strip()]
            return one.text, one.alignment, runs

        return {
            "paragraphs": [paragraph(one) for one in opened.paragraphs],
            "cells": [[cell.text for row in table.rows for cell in row.cells] for table in opened.tables],
            "within": [cell.text for cell in opened.tables[0].cell(2, 2).tables[0]._cells],
            "headers": [one.header.paragraphs[0].text for one in opened.sections],
            "first": opened.sections[1].first_page_header.paragraphs[0].text,
            "footers": [one.footer.paragraphs[0].text for one in opened.sections],
        }, {
            "styles": [one.style.name for one in (*opened.paragraphs, *opened.tables)],
            "comments": [one.text for one in opened.comments],
            "pictures": len(opened.inline_shapes),
            "title": opened.core_properties.title,
        }

    texts, others = described(tmp_path / "a.docx")
    new_texts, new_others = described(in_capitals(tmp_path / "a.docx"))
    assert new_others == others and others["comments"] == ["Is it right?"]
    assert new_texts == upper(texts)


def test_pptx(tmp_path, picture):
    pptx = pytest.importorskip("pptx")
    from pptx.chart.data import CategoryChartData
    from pptx.enum.chart import XL_CHART_TYPE
    from pptx.util import Inches

    show = pptx.Presentation()
    slide = show.slides.add_slide(show.slide_layouts[1])
    slide.shapes.title.text = "A new lamp"
    frame = slide.placeholders[1].text_frame
    frame.text = "It is bright"
    for level, text in ((1, "even at night"), (2, "and cheap")):
        paragraph = frame.add_paragraph()
        paragraph.text, paragraph.level = text, level
    mixed = frame.add_paragraph()
    for text, bold in (("Press ", None), ("the button", True), (" twice", None)):
        run = mixed.add_run()
        run.text, run.font.bold = text, bold
    link = mixed.add_run()
    link.text, link.hyperlink.address = " here", "https://a.example/b"
    slide.notes_slide.notes_text_frame.text = "Say hello first"
    place = [Inches(1)] * 4
    table = slide.shapes.add_table(2, 2, *place).table
    table.cell(0, 0).merge(table.cell(0, 1))
    table.cell(0, 0).text, table.cell(1, 1).text = "Wide", "42"
    group = slide.shapes.add_group_shape()
    group.shapes.add_textbox(*place).text_frame.text = "In a group"
    slide.shapes.add_picture(picture, *place[:2])
    data = CategoryChartData()
    data.categories = ["East"]
    data.add_series("Sales", (1.5,))
    slide.shapes.add_chart(XL_CHART_TYPE.COLUMN_CLUSTERED, *place, data)
    show.save(tmp_path / "a.pptx")

    def frames(shapes):
        for shape in shapes:
            if shape.shape_type == pptx.enum.shapes.MSO_SHAPE_TYPE.GROUP:
                yield from frames(shape.shapes)
            elif shape.has_text_frame:
                yield shape.text_frame
            elif getattr(shape, "has_table", False):
                yield from (cell.text_frame for cell in shape.table.iter_cells())

    def described(path):
        (slide,) = pptx.Presentation(path).slides
        texts = [
            [
                (
                    "".join(run.text for run in one.runs),
                    one.level,
                    [(run.text.strip(), run.font.bold, run.hyperlink.address is None) for run in one.runs],
                )
                for one in frame.paragraphs
            ]
            for frame in (*frames(slide.shapes), slide.notes_slide.notes_text_frame)
        ]
        chart = next(shape.chart for shape in slide.shapes if getattr(shape, "has_chart", False))
        links = [
            run.hyperlink.address
            for frame in frames(slide.shapes)
            for one in frame.paragraphs
            for run in one.runs
        ]
        return texts, (
            list(chart.plots[0].categories),
            list(filter(None, links)),
            [shape.shape_type for shape in slide.shapes],
        )

    texts, others = described(tmp_path / "a.pptx")
    new_texts, new_others = described(in_capitals(tmp_path / "a.pptx"))
    assert new_texts == upper(texts)
    assert new_others == others and others[1] == ["https://a.example/b"]


def test_odt(tmp_path, picture):
    pytest.importorskip("odf")
    from odf import draw, table, teletype, text
    from odf.opendocument import OpenDocumentText, load
    from odf.style import Style, TextProperties

    document = OpenDocumentText()
    bold = Style(name="Bold", family="text")
    bold.addElement(TextProperties(fontweight="bold"))
    document.automaticstyles.addElement(bold)
    add = document.text.addElement
    add(text.H(outlinelevel=1, text="Instructions for use"))
    mixed = text.P(text="Press ")
    mixed.addElement(text.Span(stylename=bold, text="the red button"))
    mixed.addText(" and read ")
    mixed.addElement(text.A(href="https://a.example/b", text="the page"))
    note = text.Note(id="n1", noteclass="footnote")
    note.addElement(text.NoteCitation(text="1"))
    body = text.NoteBody()
    body.addElement(text.P(text="A small note"))
    note.addElement(body)
    mixed.addElement(note)
    add(mixed)
    items = text.List()
    for word in ("One lamp", "Two lamps"):
        item = text.ListItem()
        item.addElement(text.P(text=word))
        items.addElement(item)
    add(items)
    cells = table.Table(name="Parts")
    cells.addElement(table.TableColumn(numbercolumnsrepeated=2))
    row = table.TableRow()
    for word in ("A cell", "42"):
        cell = table.TableCell()
        cell.addElement(text.P(text=word))
        row.addElement(cell)
    cells.addElement(row)
    add(cells)
    shown = text.P(text="A picture: ")
    frame = draw.Frame(width="1cm", height="1cm", anchortype="as-char")
    frame.addElement(draw.Image(href=document.addPicture(picture)))
    shown.addElement(frame)
    add(shown)
    document.save(tmp_path / "a.odt")

    def described(path):
        opened = load(path)
        kinds = text.H, text.P, text.Span, text.A
        texts = [[teletype.extractText(one) for one in opened.getElementsByType(kind)] for kind in kinds]
        kinds = text.List, text.ListItem, table.TableRow, table.TableCell, draw.Image, text.Note
        links = [one.getAttribute("href") for one in opened.getElementsByType(text.A)]
        return texts, ([len(opened.getElementsByType(kind)) for kind in kinds], links)

    texts, others = described(tmp_path / "a.odt")
    new_texts, new_others = described(in_capitals(tmp_path / "a.odt"))
    assert new_texts == upper(texts)
    assert new_others == others and others[1] == ["https://a.example/b"]


def test_epub(tmp_path):
    pytest.importorskip("ebooklib")
    from bs4 import BeautifulSoup
    from ebooklib import ITEM_DOCUMENT, epub

    book = epub.EpubBook()
    book.set_identifier("id1")
    book.set_title("A book")
    book.set_language("en")
    book.add_author("Ann Author")
    chapters = []
    for number, words in enumerate(("The first day", "The second day"), 1):
        chapter = epub.EpubHtml(title=words, file_name=f"c{number}.xhtml", lang="en")
        chapter.content = (
            f"<h1>{words}</h1><p>A <i>dog</i> &amp; <a href='c1.xhtml'>a cat</a>.</p>"
            "<blockquote><p>Who?</p></blockquote><ul><li>One</li><li>Two</li></ul>"
            "<img src='dot.png' alt='A dot'/>"
        )
        book.add_item(chapter)
        chapters.append(chapter)
    book.add_item(epub.EpubItem(uid="dot", file_name="dot.png", media_type="image/png", content=PNG))
    book.toc = (epub.Link("c1.xhtml", "The first day", "c1"), (epub.Section("More"), (chapters[1],)))
    book.add_item(epub.EpubNcx())
    book.add_item(epub.EpubNav())
    book.spine = ["nav", *chapters]
    epub.write_epub(tmp_path / "a.epub", book)

    def described(path):
        opened = epub.read_epub(path)
        pages = [BeautifulSoup(item.get_content(), "xml") for item in opened.get_items_of_type(ITEM_DOCUMENT)]
        texts = [list(page.stripped_strings) for page in pages]
        ncx = BeautifulSoup(opened.get_item_with_id("ncx").get_content(), "xml")
        texts.append([label.get_text(strip=True) for label in ncx.find_all("navLabel")])
        names = [[tag.name for tag in page.find_all(True)] for page in pages]
        dot = next(item.get_content() for item in opened.get_items() if item.file_name.endswith("dot.png"))
        return texts, (names, dot, [one[0] for one in opened.spine], opened.get_metadata("DC", "creator"))

    texts, others = described(tmp_path / "a.epub")
    new_texts, new_others = described(in_capitals(tmp_path / "a.epub"))
    assert new_texts == upper(texts) and any("The second day" in some for some in texts)
    assert new_others == others


def test_po(tmp_path):
    polib = pytest.importorskip("polib")
    pytest.importorskip("translate")
    catalogue = polib.POFile(wrapwidth=40)
    catalogue.metadata = {
        "Language": "de",
        "Content-Type": "text/plain; charset=utf-8",
        "Plural-Forms": "nplurals=2; plural=(n != 1);",
    }
    catalogue.append(
        polib.POEntry(
            msgid='A long message that goes over lines, with "quotes" and %s in it.\n',
            comment="A note",
            tcomment="Another",
            occurrences=[("a.c", "3")],
            flags=["c-format"],
        )
    )
    catalogue.append(
        polib.POEntry(msgid="%d dog", msgid_plural="%d dogs", msgstr_plural={0: "", 1: ""}, msgctxt="animals")
    )
    catalogue.append(polib.POEntry(msgid="Open", msgstr="Auf"))
    catalogue.append(polib.POEntry(msgid="Gone", msgstr="", obsolete=True))
    catalogue.save(tmp_path / "a.po")
    before, after = polib.pofile(tmp_path / "a.po"), polib.pofile(in_capitals(tmp_path / "a.po"))
    kept = "msgid", "msgid_plural", "msgctxt", "comment", "tcomment", "occurrences", "obsolete"
    for one, new in zip(before, after, strict=True):
        assert [getattr(one, name) for name in kept] == [getattr(new, name) for name in kept]
    first, second, third, fourth = after
    assert first.msgstr == first.msgid.upper().replace("%S", "%s") and first.flags == ["c-format", "fuzzy"]
    assert second.msgstr_plural == {0: "%d DOG", 1: "%d DOGS"} and second.fuzzy
    assert (third.msgstr, third.fuzzy, fourth.msgstr) == ("Auf", False, "")
    assert after.metadata == before.metadata


def test_subtitles(tmp_path):
    pysrt, webvtt = pytest.importorskip("pysrt"), pytest.importorskip("webvtt")
    cues = ["<i>Who</i> is there?", "A man and a dog\nin the snow.", "- Come in!\n- No."]
    times = [(1000 * number, 1000 * number + 800) for number in range(1, 4)]
    srt = pysrt.SubRipFile(
        [
            pysrt.SubRipItem(number, *map(pysrt.SubRipTime.from_ordinal, time), text)
            for number, (time, text) in enumerate(zip(times, cues, strict=True), 1)
        ]
    )
    srt.save(str(tmp_path / "a.srt"), encoding="utf-8")
    vtt = webvtt.WebVTT()
    for (start, end), text in zip(times, cues, strict=True):
        vtt.captions.append(
            webvtt.Caption(f"00:00:0{start // 1000}.000", f"00:00:0{start // 1000}.{end % 1000}", text)
        )
    vtt.save(str(tmp_path / "a.vtt"))
    expected = [text.upper().replace("<I>", "<i>").replace("</I>", "</i>") for text in cues]
    new = pysrt.open(str(in_capitals(tmp_path / "a.srt")), encoding="utf-8")
    assert [one.text for one in new] == expected
    assert [(one.index, one.start.ordinal, one.end.ordinal) for one in new] == [
        (number, *time) for number, time in enumerate(times, 1)
    ]
    before, after = webvtt.read(str(tmp_path / "a.vtt")), webvtt.read(str(in_capitals(tmp_path / "a.vtt")))
    assert [one.raw_text for one in after] == expected
    assert [(one.start, one.end) for one in after] == [(one.start, one.end) for one in before]


@pytest.mark.parametrize("module", ["xliff", "xliff2"])
def test_xliff(tmp_path, module):
    storage = pytest.importorskip(f"translate.storage.{module}")
    store = (storage.xlifffile if module == "xliff" else storage.Xliff2File)()
    store.setsourcelanguage("en")
    store.settargetlanguage("de")
    for text, target in (("Open the box", None), ("Press {0}", None), ("Done", "Fertig")):
        unit = store.addsourceunit(text)
        if target:
            unit.target = target
    (tmp_path / "a.xliff").write_bytes(bytes(store))
    new = type(store).parsestring(in_capitals(tmp_path / "a.xliff").read_bytes())
    found = [(unit.source, unit.target) for unit in new.units if unit.source]
    assert found == [("Open the box", "OPEN THE BOX"), ("Press {0}", "PRESS {0}"), ("Done", "Fertig")]
