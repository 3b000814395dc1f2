"""Documents over LibreTranslate's API: the strings are those of `translate`; nothing is left on the disk."""

import asyncio
import contextlib
import io
import itertools
import tempfile
import threading
import zipfile
from html import escape
from pathlib import Path

import pytest
from asking import answers
from test_keys import KEY, line
from tiny_models import BEAM, pope

from kzoo.decoding import SearchSettings
from kzoo.serve import Keys, Limits, Served, create_app
from kzoo.serve.batching import Busy
from kzoo.serve.files import AT_A_TIME, MOST_KEPT, Documents, finished

pytest.importorskip("bs4")
pytest.importorskip("lxml")
pytest.importorskip("python_multipart")

W = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
LIMITS = Limits(characters=100, sentences=4, document=12, body=500_000)


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


@pytest.fixture(scope="module")
def app():
    pope().search = SearchSettings(BEAM)
    return create_app(Served(pope(), "tiny", max_batch=4, limits=LIMITS))


def post(name, content, **fields):
    data = {"source": "en", "target": "de"} | fields
    return "POST", "/translate_file", {"files": {"file": (name, content)}, "data": data}


def docx(**parts):
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", content)
    return file.getvalue()


def paragraphs(*texts):
    found = "".join(f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in texts)
    return f'<w:document xmlns:w="{W}"><w:body>{found}</w:body></w:document>'


WHOLE = docx(document=paragraphs("a"))


def folders():
    return set(Path(tempfile.gettempdir()).glob("kzoo_file_*"))


def test_a_document_is_had_from_its_address(app):
    texts = ["a man.", "two dogs.", "men.", "a man. men.", "dogs.", "two men."]
    (answer,) = answers(app, [post("../Über.docx", docx(document=paragraphs(*texts)))])
    address = answer.json()["translatedFileUrl"]
    assert list(answer.json()) == ["translatedFileUrl"] and address.startswith("http://test/download_file/")
    once, again, other = answers(
        app, [("GET", address, {}), ("GET", address, {}), ("GET", address[:-20], {})]
    )
    with zipfile.ZipFile(io.BytesIO(once.content)) as archive:
        expected = pope().translate(texts, split_sentences=True)
        assert archive.read("word/document.xml").decode().endswith(paragraphs(*map(escape, expected)))
    assert (once.content, other.status_code) == (again.content, 404)
    assert "attachment" in once.headers["content-disposition"]
    assert once.headers["content-disposition"].endswith("%C3%9Cber_de.docx")
    assert once.headers["x-content-type-options"] == "nosniff"
    assert not folders()


@pytest.mark.parametrize("source", ["de", "auto"])
def test_a_document_in_the_target_language_stays(app, source):
    if source == "auto":
        pytest.importorskip("py3langid")
    page = "<p>Zwei Männer sitzen auf einer Bank in der Sonne.</p>"
    (answer,) = answers(app, [post("a.html", page.encode(), source=source)])
    (found,) = answers(app, [("GET", answer.json()["translatedFileUrl"], {})])
    assert found.text == page


def test_the_language_that_a_document_names_is_not_identified(app):
    unit = '<unit id="u"><segment><source>dem das.</source></segment></unit>'
    file = f'<xliff version="2.0" srcLang="en-GB" trgLang="de"><file id="f">{unit}</file></xliff>'
    (answer,) = answers(app, [post("a.xlf", file.encode(), source="auto")])
    (found,) = answers(app, [("GET", answer.json()["translatedFileUrl"], {})])
    expected = pope().translate(["dem das."])[0]
    assert f"<target>{escape(expected, quote=False)}</target>" in found.text


def test_a_sentence_that_is_too_long_leaves_its_text(app):
    long = "a" * 30
    (answer,) = answers(app, [post("a.html", f"<p>a man.</p><p>{long}</p>".encode())])
    (found,) = answers(app, [("GET", answer.json()["translatedFileUrl"], {})])
    assert found.text == f"<p>{escape(pope().translate(['a man.'])[0])}</p><p>{long}</p>"


@pytest.mark.parametrize(
    ("name", "content", "fields", "word"),
    [
        ("a.pdf", b"%PDF", {}, "a.pdf: no document"),
        ("", b"{}", {}, "file"),
        ("a.docx", b"no archive", {}, "a.docx: is damaged"),
        ("a.docx", WHOLE[:-9], {}, "a.docx: is damaged"),
        ("a.docx", WHOLE[:60] + b"\xff" * 9 + WHOLE[69:], {}, "a.docx: is damaged"),
        ("a.docx", docx(document='<!DOCTYPE x [<!ENTITY a "b">]><x>&a;</x>'), {}, "entit"),
        ("a.docx", docx(document=paragraphs("a"), picture="\0" * 2**26), {}, "unpacks to over"),
        ("a.docx", docx(document="<a/>" * 200_001), {}, "200,000 elements"),
        ("a.html", b"<div>" * 5000 + b"a", {}, "nested too deeply"),
        ("a.html", b"<p>" + b"a " * 99, {}, "at most 100"),
        ("a.html", b"".join(b"<p>%c" % c for c in range(97, 110)), {}, "13 sentences"),
        ("a.json", b'{"a": "b"}', {"target": "fr"}, "fr"),
        ("a.json", b'{"a": "b"}', {"target": ""}, "target"),
        ("a.xlf", b'<xliff version="2.0" srcLang="cs"><file/></xliff>', {}, "a.xlf names the language cs"),
    ],
)  # fmt: skip
def test_bad_files(app, name, content, fields, word):
    (answer,) = answers(app, [post(name, content, **fields)])
    assert (answer.status_code, list(answer.json())) == (400, ["error"])
    assert word in answer.json()["error"] and tempfile.gettempdir() not in answer.json()["error"]
    assert "\n" not in answer.json()["error"] and not folders()


def test_other_requests(app):
    fields = {"source": "en", "target": "de"}
    for more in ({"json": {"file": "a", **fields}}, {"data": {"file": "a", **fields}}, {"data": fields}):
        (answer,) = answers(app, [("POST", "/translate_file", more)])
        assert (answer.status_code, "file" in answer.json()["error"]) == (400, True)


def test_a_key_is_needed_for_all_but_the_download(tmp_path):
    (tmp_path / "keys").write_text(line(KEY))
    app = create_app(Served(pope(), "tiny", max_batch=4, limits=LIMITS), keys=Keys.read(tmp_path / "keys"))
    page = b"<p>a man.</p>"
    none, wrong, right, settings = answers(
        app,
        [
            post("a.html", page),
            post("a.html", page, api_key="x"),
            post("a.html", page, api_key=KEY),
            ("GET", "/frontend/settings", {}),
        ],
    )
    assert [answer.status_code for answer in (none, wrong, right, settings)] == [401, 401, 200, 200]
    (found,) = answers(app, [("GET", right.json()["translatedFileUrl"], {})])
    assert found.text == f"<p>{escape(pope().translate(['a man.'])[0])}</p>"
    assert {".docx", ".html", ".xlf"} < set(settings.json()["supportedFilesFormat"])
    assert settings.json()["keyRequired"] and settings.json()["language"]["target"]["code"] == "de"


def test_documents_are_kept_for_a_while_and_up_to_a_number():
    documents, old = Documents(), Documents(seconds=0)
    tokens = [documents.keep("a.html", b"a") for _ in range(MOST_KEPT + 1)]
    assert [documents.get(token) is None for token in tokens[:2]] == [True, False]
    assert len(set(tokens)) == len(tokens) and old.get(old.keep("a.html", b"a")) is None


def test_few_are_translated_at_a_time():
    documents = Documents()
    with contextlib.ExitStack() as stack:
        for _ in range(AT_A_TIME):
            stack.enter_context(documents.one())
        with pytest.raises(Busy):
            stack.enter_context(documents.one())
    with documents.one():
        pass


def test_a_document_needs_little_room_in_the_queue():
    """128 sentences, where a request of more than 96 would be refused."""
    app = create_app(Served(pope(), "tiny", max_batch=4, limits=Limits(queue=128)))
    texts = ["".join(words) + "." for words in itertools.product("amst", "egno", "adem", "no")]
    page = "".join(f"<p>{text}</p>" for text in texts).encode()
    (answer,) = answers(app, [post("a.html", page)])
    assert (len(texts), answer.status_code) == (128, 200)


def test_a_document_counts_while_it_is_read_even_if_the_client_has_left():
    begun, may_end = threading.Event(), threading.Event()

    def read():
        begun.set()
        may_end.wait()

    async def main():
        reading = asyncio.create_task(finished(read))
        await asyncio.to_thread(begun.wait)
        reading.cancel()
        for _ in range(9):  # turns of the loop
            await asyncio.sleep(0)
        early = reading.done()
        may_end.set()
        await asyncio.wait([reading])
        return early, reading.cancelled()

    assert asyncio.run(main()) == (False, True)
