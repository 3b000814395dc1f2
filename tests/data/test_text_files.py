"""Text files, read whole or as a stream: the same lines, and the same message about what is wrong."""

import bz2
import gzip
import hashlib
import lzma
import re
import tarfile
import tracemalloc
import zipfile

import pytest
from message_of import message_of

from kzoo.data import open_files
from kzoo.data.own_files import stream_pairs
from kzoo.data.text_files import read_lines, stream_lines

NO_LINE_ENDS = ["a\u2028b\u2029c\x85d", "e\x0bf\x0cg\x1ch\x1di\x1ej", "k\rl", " m ", "", "n"]
LINES = {
    "": [],
    "a": ["a"],
    "a\n": ["a"],
    "\n": [""],
    "\ufeff": [],
    "\ufeff\n": [""],
    "\ufeff\ufeffa\r\n\n b\u2028c\r\nd": ["\ufeffa", "", " b\u2028c", "d"],
    "a\r\nb\r\r\n": ["a", "b"],
    "\n".join(NO_LINE_ENDS): NO_LINE_ENDS,
    "ä\n\ufeffö\nabcdefghijkl\n": ["ä", "\ufeffö", "abcdefghijkl"],
}


@pytest.mark.parametrize("content", LINES)
def test_streamed_lines_are_those_of_the_whole_file(content, tmp_path):
    plain, packed = tmp_path / "text", tmp_path / "text.gz"
    plain.write_text(content, "utf-8", newline="")
    packed.write_bytes(gzip.compress(content.encode()))
    for path in (plain, packed):
        assert list(stream_lines(path)) == read_lines(path).sentences == LINES[content]


@pytest.mark.parametrize("name", ["text", "text.GZ", "text.bz2", "text.Xz"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_text_is_read_as_programs_write_it(name, encoding, end, tmp_path):
    lines, path = ["Grüße, 世界", "\U0001f600", "", "ein Hund"], tmp_path / name
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    data = (mark + "".join(line + end for line in lines)).encode(encoding)
    packing = {".gz": gzip, ".bz2": bz2, ".xz": lzma}.get(path.suffix.lower())
    path.write_bytes(packing.compress(data) if packing else data)
    assert list(stream_lines(path)) == read_lines(path).sentences == lines
    path = path.rename(tmp_path / "unnamed")  # told by how it begins
    assert read_lines(path).sentences == lines


def test_what_is_no_text_is_named(tmp_path):
    path = tmp_path / "train.en"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("train.en", "a dog")
    assert "ZIP" in message_of(read_lines, path)
    with tarfile.open(path, "w:gz") as archive:
        archive.add(__file__)
    assert " tar " in message_of(read_lines, path)
    path.write_bytes(b"\x28\xb5\x2f\xfd\x04")
    assert "Zstandard" in message_of(read_lines, path)
    path.write_bytes(lzma.compress(b"a dog", format=lzma.FORMAT_ALONE))
    assert "LZMA" in message_of(read_lines, path)
    path.write_bytes("a dog".encode("utf-16")[:-1])
    assert message_of(read_lines, path).startswith(f"{path}, line 1: ")
    for packing in (bz2, lzma):
        path.write_bytes(packing.compress(b"a\nb\n" * 99)[:-9])
        assert message_of(read_lines, path).startswith(f"{path}: broken")


OTHER_FORMATS = {
    "srt": "1\n00:00:01,000 --> 00:00:02,000\nA dog runs.\n",
    "vtt": "WEBVTT\n\n00:01.000 --> 00:02.000\nA dog runs.\n",
    "jsonl": '{"en": "A dog runs.", "de": "Ein Hund rennt."}\n',
    "json": '[\n  {"en": "A dog runs."}\n]\n',
    "ndjson": '["A dog runs.", "Ein Hund rennt."]\n',
    "ass": "[Script Info]\nTitle: A dog\n",
    "html": "<!doctype html>\n<html><body>A dog runs.</body></html>\n",
    "tmx": '<?xml version="1.0"?>\n<tmx version="1.4"></tmx>\n',
    "xliff": '<xliff version="1.2"></xliff>\n',
    "po": '# German\n#, fuzzy\nmsgid ""\nmsgstr ""\n',
    "docx": "PK\x03\x04",
}


@pytest.mark.parametrize("ending", OTHER_FORMATS)
def test_text_that_is_not_a_sentence_per_line_is_refused(ending, tmp_path):
    content = OTHER_FORMATS[ending]
    names = {f"text.{ending}": "A dog.\n", f"text.{ending}.gz": "A dog.\n", "text.en": content}
    for name, text in {**names, "marked.en": "\ufeff" + content.replace("\n", "\r\n")}.items():
        if (path := tmp_path / name).suffix == ".gz":
            path.write_bytes(gzip.compress(text.encode()))
        else:
            path.write_text(text, "utf-8", newline="")
        if name == "marked.en" and ending == "docx":
            continue
        for read in (read_lines, lambda path: open_files(test=(path, __file__))):
            assert re.search(rf"{re.escape(str(path))}:? is ", message_of(read, path))


@pytest.mark.parametrize(
    "text",
    [
        "1\n2\n",
        "1984\n12:30 --> home\n",
        "<3 dogs run.\n",
        "<b>A</b> dog.\n",
        "{a} dog\n",
        '"A dog"\n',
        "[1]\n",
        '["A dog"]\n',
    ],
)
def test_sentences_that_resemble_other_formats_are_read(text, tmp_path):
    path = tmp_path / "text.en"
    path.write_text(text)
    assert read_lines(path).sentences == text.splitlines()


def test_endings_that_name_the_other_language_are_refused(tmp_path):
    def path(name):
        (tmp_path / name).write_text("A dog.\n")
        return tmp_path / name

    english, german, gzipped = path("train.en"), path("train.de"), tmp_path / "train.deu.gz"
    gzipped.write_bytes(gzip.compress(b"Ein Hund.\n"))
    texts = path("train.en.txt"), path("de.txt")
    wrong = ((german, english), (gzipped, english), (german, path("a.txt")), (path("b.txt"), english))
    wrong += (texts[::-1],)
    for files in (*wrong, (english, path("train.fr")), (path("train.cs"), german)):
        message = message_of(open_files, train=files, languages=("en", "de"))
        assert str(files[0]) in message and str(files[1]) in message
    right = ((english, german), (english, gzipped), (path("a.xy"), path("b.xy")), (english, path("c.tok")))
    right += (texts,)
    for files in right:
        assert open_files(train=files, languages=("en", "de")).pairs("train", "en", "de")
    assert open_files(train=(german, english)).languages == ("en", "de")  # whose are not known yet
    assert open_files(train=(path("x.zh"), path("y.zh-Hant")), languages=("zh-Hans", "zh-Hant"))


def test_gzip_of_several_members_is_read_whole(tmp_path):
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\nb") + gzip.compress(b"c\nd\n"))
    assert list(stream_lines(path)) == read_lines(path).sentences == ["a", "bc", "d"]


@pytest.mark.parametrize("where", ["end", "trailer", "middle", "start", "not packed"])
def test_broken_gzip_is_named(tmp_path, where):
    lines = [hashlib.sha256(str(i).encode()).hexdigest() for i in range(5000)]
    packed = bytearray(gzip.compress("\n".join(lines).encode()))
    if where == "end":
        packed = packed[: len(packed) // 2]
    elif where == "trailer":
        packed = packed[:-3]
    elif where == "middle":
        packed[len(packed) // 2 : len(packed) // 2 + 64] = b"\xff" * 64
    elif where == "start":
        packed = packed[:7]
    else:
        packed = "\n".join(lines).encode()
    path = tmp_path / "text.gz"
    path.write_bytes(packed)
    assert message_of(read_lines, path).startswith(f"{path}: ")


@pytest.mark.parametrize("name", ["text", "text.gz"])
@pytest.mark.parametrize("bad", [b"\xff", "ü".encode("latin-1"), "ü".encode()[:1], b"\xed\xa0\x80"])
def test_invalid_utf8_names_file_and_line(tmp_path, bad, name):
    path, data = tmp_path / name, b"a\r\nb\n" + bad + b"\nc\n"
    path.write_bytes(gzip.compress(data) if path.suffix else data)
    assert message_of(read_lines, path).startswith(f"{path}, line 3: ")


@pytest.mark.parametrize(
    ("data", "line"), [(b"a\rb\r\xff\r", 3), ("\ufeffĊ\n".encode("utf-16-le") + b"\x00\xdc", 2)]
)
def test_lines_are_counted_by_their_own_end(data, line, tmp_path):
    (tmp_path / "text").write_bytes(data)
    assert f"text, line {line}:" in message_of(read_lines, tmp_path / "text")


@pytest.mark.parametrize("reader", [read_lines, lambda path: list(stream_lines(path))])
def test_a_nul_names_file_and_line(tmp_path, reader):
    for text, line in (("a\nbc\nd\0e\nf\n", 3), ("\0", 1)):
        (tmp_path / "text").write_text(text)
        assert message_of(reader, tmp_path / "text").startswith(f"{tmp_path / 'text'}, line {line}: a NUL")


@pytest.mark.parametrize(("table", "refused"), [("a\tb\nc\td\n", True), ("a\tb\n\n", False)])
def test_text_whose_lines_all_have_tabs_is_taken_for_a_table(table, refused, tmp_path):
    files = tmp_path / "train.en", tmp_path / "train.de"
    files[0].write_text("x\ny\n")
    files[1].write_text(table)
    for read in (open_files(train=files).pairs, lambda *_: list(stream_pairs(files, ("en", "de")))):
        if refused:
            message = message_of(read, "train", "en", "de")
            assert message.startswith(f"{files[1]}: ") and ".tsv" in message
        else:
            read("train", "en", "de")


@pytest.mark.parametrize("name", ["text", "text.gz"])
def test_streamed_text_is_never_whole_in_memory(name, tmp_path, monkeypatch):
    monkeypatch.setattr("kzoo.data.text_files.CHUNK", 1 << 12)
    path, text = tmp_path / name, b"a line of no meaning\n" * 200_000
    path.write_bytes(gzip.compress(text) if path.suffix else text)
    tracemalloc.start()
    try:
        assert sum(len(line) + 1 for line in stream_lines(path)) == len(text)
        assert tracemalloc.get_traced_memory()[1] < len(text) / 4
    finally:
        tracemalloc.stop()


def test_bad_text_is_named_as_by_the_reader_of_whole_files(tmp_path):
    three, two = tmp_path / "three", tmp_path / "two"
    three.write_text("a\nb\nc\n")
    two.write_text("a\nb\n")
    latin, broken, tsv = tmp_path / "latin", tmp_path / "broken.gz", tmp_path / "text.tsv"
    latin.write_bytes(b"one\ntwo\nd\xe9j\xe0\nfour\n")
    cut, ends_cut = tmp_path / "cut", tmp_path / "ends_cut"
    cut.write_bytes(b"one\ntw\xc3\nthree\n")
    ends_cut.write_bytes(b"one\ntw\xc3")
    broken.write_bytes(gzip.compress(bytes(range(32, 127)) * 9)[:-9])
    tsv.write_text("a\tb\na\tb\tc\n")
    for files in (
        [three, two],
        [two, three],
        [latin, three],
        [cut, three],
        [ends_cut, three],
        [broken, three],
        [tsv],
    ):
        whole = message_of(lambda files: open_files(train=files).pairs("train", "en", "de"), files)
        assert message_of(lambda files: list(stream_pairs(files, ("en", "de"))), files) == whole
