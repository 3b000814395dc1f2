"""The encodings of web pages, read as browsers do."""

import codecs

import pytest
from message_of import message_of

from kzoo.documents import Document

bs4 = pytest.importorskip("bs4")


def page(name: str, text: str) -> str:
    return f'<html><head><meta charset="{name}"></head><body><p>{text}</p></body></html>'


@pytest.mark.parametrize(
    ("content", "text", "encoding"),
    [
        (page("utf-8", "Häuser").encode(), "Häuser", "utf-8"),
        (page("gb2312", "朱镕基").encode("gbk"), "朱镕基", "gb18030"),  # GB 2312 lacks the second
        (page("shift_jis", "①番").encode("cp932"), "①番", "cp932"),
        (page("iso-8859-1", "“Häuser”").encode("cp1252"), "“Häuser”", "cp1252"),
        (page("utf-16", "Häuser").encode(), "Häuser", "utf-8"),
        (page("hex", "houses").encode(), "houses", "ascii"),
        (codecs.BOM_UTF8 + b"<p>H\xc3\xa4user</p>", "Häuser", "utf-8-sig"),
        ("<p>Häuser</p>".encode("utf-16"), "Häuser", "utf-16"),
    ],
)
def test_a_page_is_read_in_the_encoding_that_it_says_and_written_in_it(tmp_path, content, text, encoding):
    (tmp_path / "a.html").write_bytes(content)
    document = Document(tmp_path / "a.html")
    assert document.texts == [text]
    with open(tmp_path / "b.html", "wb") as file:
        document.write(file, {text: text.upper() + "☃"})
    written = (tmp_path / "b.html").read_bytes().decode(encoding)
    assert bs4.BeautifulSoup(written, "html.parser").p.text == text.upper() + "☃"
    assert Document(tmp_path / "b.html").texts == [text.upper() + "☃"]


def test_a_page_in_another_encoding_than_it_says_is_refused(tmp_path):
    (tmp_path / "a.html").write_bytes(page("utf-8", "Häuser").encode("latin-1"))
    message = message_of(Document, tmp_path / "a.html")
    assert "a.html" in message and "utf-8" in message


def test_an_empty_page_has_no_texts(tmp_path, caplog):
    (tmp_path / "a.html").write_bytes(b"")
    assert not Document(tmp_path / "a.html").texts
    assert not caplog.records
