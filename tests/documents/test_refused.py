"""Files that lie are refused in a line, and nothing is written."""

import io
import json
import os
import struct
import zipfile
from pathlib import Path

import pytest
from made_up import MadeUp
from message_of import message_of

from kzoo.documents import Document, archive, translate_document

pytest.importorskip("bs4")
pytest.importorskip("lxml")
pytest.importorskip("translate")

BOMB = '<!DOCTYPE x [<!ENTITY a "aaa"><!ENTITY b "&a;&a;">]><x><p>&b;</p></x>'
OUTSIDE = '<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><x><p>&a;</p></x>'
TWO_TARGETS = """<xliff version="1.2">
<file source-language="en" target-language="de-DE"><body/></file>
<file source-language="en" target-language="de"><body/></file>
<file source-language="en" target-language="fr"><body/></file>
</xliff>"""


# Two parts of an archive of each format.
PARTS = {
    "a.docx": ("word/document.xml", "word/footnotes.xml"),
    "a.pptx": ("ppt/slides/slide1.xml", "ppt/slides/slide2.xml"),
    "a.odt": ("content.xml", "styles.xml"),
    "a.epub": ("a.xhtml", "b.xhtml"),
}


def zipped(*names: str, content: str | bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as new:
        for name in (*names, "META-INF/container.xml"):  # the last, for .epub
            new.writestr(name, content)
    return file.getvalue()


def lying(name: str) -> bytes:
    """An archive whose directory says that its part has one byte."""
    content = zipped(name, content="<x>" + 1000 * "a" + "</x>")
    return content.replace(struct.pack("<I", 1007), struct.pack("<I", 1))


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize(
    ("content", "says"),
    [
        (lambda part: b"PK\x03\x04 damaged", "is damaged"),
        (lambda part: zipped(part, content="<x>a</x>")[:-30], "is damaged"),
        (lying, "is damaged"),
        (lambda part: zipped(part, content="<x>"), "{part}, line 1: not XML"),
        (lambda part: zipped(part, content=BOMB), "declares entities"),
        (lambda part: zipped(part, content=OUTSIDE), "declares entities"),
        (lambda part: zipped("other", content="<x/>"), "has no "),
        (lambda part: zipped("word/styles.xml", "ppt/presentation.xml", content="<x/>"), "has no "),
    ],
)  # fmt: skip
def test_archives(tmp_path, monkeypatch, name, content, says):
    monkeypatch.chdir(tmp_path)
    part = PARTS[name][0]
    Path(name).write_bytes(
        content(part).replace(b"META-INF", b"M" * 8) if says == "has no " else content(part)
    )
    message = message_of(translate_document, Path(name), Path(f"new-{name}"), MadeUp(str))
    assert name in message and says.format(part=part) in message
    assert os.listdir() == [name]


@pytest.mark.parametrize(
    ("name", "content", "says"),
    [
        ("a.xliff", BOMB.encode, "declares entities"),
        ("a.xlf", OUTSIDE.encode, "declares entities"),
        ("a.xlf", lambda: b"msgid", "not XML"),
        ("a.xlf", TWO_TARGETS.encode, "several languages, de-DE, de, fr"),
        ("a.json", lambda: b"[" * 100_000, "not JSON"),
        ("a.json", lambda: b'{"a": "b"', "not JSON"),
        ("a.xlf", lambda: b"<html><p>a</p></html>", "not XLIFF"),
        ("a.srt", lambda: b"text", "no subtitles"),
        ("a.srt", lambda: b"1\n00:00:01,000 --> 00:00:02,000\n\xff\n", "not valid UTF-8"),
        ("a.vtt", lambda: b"WEBVTT\n\ntext", "no subtitles"),
        ("a.vtt", lambda: b"WEBVTT\n\n00:01.000 --> 00:02.000\n\xff\n", "not valid UTF-8"),
        ("a.po", lambda: b'msgid "a"\nmsgid "b"\nwhat\n', "not a gettext catalogue"),
        ("a.po", lambda: b"PK\x03\x04" + b"\x81" * 1000, "not a gettext catalogue"),
        ("a.vtt", lambda: b"1\n00:00:01,000 --> 00:00:02,000\na\n", "WEBVTT"),
        ("a.srt", lambda: b"WEBVTT\n\n00:01.000 --> 00:02.000\na\n", "WEBVTT"),
        ("a.html", lambda: zipped("a", content="<p>a"), "not a web page"),
        ("a.html", lambda: b"<div>" * 5000 + b"a", "nested too deeply"),
        ("a.docx", None, "No such file"),
    ],
)  # fmt: skip
def test_one_line(tmp_path, monkeypatch, name, content, says):
    monkeypatch.chdir(tmp_path)
    if content:
        Path(name).write_bytes(content())
    message = message_of(translate_document, Path(name), Path(f"new-{name}"), MadeUp(str))
    assert name in message and says in message and len(message) < 300
    assert os.listdir() == ([name] if content else [])


@pytest.mark.parametrize("output", ["a.json", "a.txt/b.json"])
def test_an_output_that_cannot_be_written_is_refused_first(tmp_path, monkeypatch, output):
    monkeypatch.chdir(tmp_path)
    Path("a.json").write_text('"A dog"')
    Path("a.txt").touch()
    translator = MadeUp(str.upper)
    assert output in message_of(translate_document, Path("a.json"), Path(output), translator)
    assert (translator.asked, Path("a.json").read_text()) == ([], '"A dog"')


@pytest.mark.parametrize("name", PARTS)
@pytest.mark.parametrize("bound", ["LARGEST", "MOST_READ"])
def test_what_unpacks_to_too_much(tmp_path, monkeypatch, bound, name):
    monkeypatch.setattr(archive, bound, 10**6)
    path = tmp_path / name
    path.write_bytes(zipped(*PARTS[name], content=bytes(10**6 // 2 + 1)))
    assert f"{path}: unpacks to" in message_of(
        translate_document, path, tmp_path / f"new-{name}", MadeUp(str)
    )
    assert os.listdir(tmp_path) == [name]


def test_damage_of_what_is_copied_is_found_before_anything_is_translated(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with zipfile.ZipFile("a.docx", "w") as new:
        new.writestr("word/document.xml", "<x><p><r><t>A dog</t></r></p></x>")
        new.writestr("picture", "picture" * 9)
    Path("a.docx").write_bytes(Path("a.docx").read_bytes().replace(b"picturepicture", b"picturePICTURE"))
    assert "a.docx" in message_of(Document, Path("a.docx"))
    assert [path.name for path in tmp_path.iterdir()] == ["a.docx"]


def test_endings(tmp_path):
    (tmp_path / "a.json").write_text("{}")
    assert ".json" in message_of(translate_document, tmp_path / "a.json", tmp_path / "a.txt", MadeUp(str))
    assert ".docx" in message_of(Document, tmp_path / "a.pdf")


def test_what_has_no_sound_translation_stays_and_is_named(tmp_path):
    (tmp_path / "a.json").write_text(json.dumps({"a": "A dog", "b": "A {x} cat"}, indent=1))
    translator = MadeUp(lambda text: text.replace("cat", "7"))
    left = translate_document(tmp_path / "a.json", tmp_path / "b.json", translator)
    assert left == ["line 3"]  # 7 is a number that the text does not have
    assert json.loads((tmp_path / "b.json").read_text())["b"] == "A {x} cat"
