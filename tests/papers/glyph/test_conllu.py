"""The CoNLL-U reader on small files, on broken ones, and on the real treebanks."""

import gzip
import os
import re
from pathlib import Path

import pytest
from message_of import message_of

from kzoo.errors import UserError
from training.glyph.treebanks import read_conllu


def row(identity, form, upos):
    return "\t".join([identity, form, form, upos, *"______"])


GOOD = [
    "# sent_id = 1",
    row("1", "学生", "NOUN"),
    row("2-3", "来了", "_"),
    row("2", "来", "VERB"),
    row("3", "了", "AUX"),
    row("3.1", "吧", "PART"),
    "",
    "# sent_id = 2",
    row("1", "2004", "NUM"),
]


@pytest.mark.parametrize("name", ["a.conllu", "a.conllu.gz"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_words_and_tags(name, end, tmp_path):
    data = end.join(GOOD).encode()
    (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    assert read_conllu(tmp_path / name) == [
        [("学生", "NOUN"), ("来", "VERB"), ("了", "AUX")],
        [("2004", "NUM")],
    ]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("1 学生 学生 NOUN", "line 2: 1 "),
        (row("1", "学生", "NOUN") + "\t_", "line 2: 11 "),
        (row("2", "学生", "NOUN"), "line 2: .*'2'"),
        (row("one", "学生", "NOUN"), "line 2: .*'one'"),
        (row("1", "学生", "_"), "line 2: .*'_'"),
        (row("1", " ", "NOUN"), "line 2: .*' '"),
    ],
)
def test_broken_columns_are_named(line, message, tmp_path):
    path = tmp_path / "broken.conllu"
    path.write_text(f"# text\n{line}\n")
    with pytest.raises(UserError) as error:
        read_conllu(path)
    assert re.match(f"{re.escape(str(path))}, {message}", str(error.value)) and "\n" not in str(error.value)


def test_a_file_without_sentences_is_named(tmp_path):
    (tmp_path / "empty.conllu").write_text("# nothing\n\n")
    for name in ("empty.conllu", "gone.conllu"):
        assert name in message_of(read_conllu, tmp_path / name)


@pytest.mark.parametrize(("name", "count"), [("zh_gsdsimp-ud-test", 500), ("zh_hk-ud-test", 1004)])
def test_real_treebanks(name, count):
    folder = os.environ.get("KZOO_DATA")
    if not folder or not (Path(folder) / "ud_chinese").is_dir():
        pytest.skip("set KZOO_DATA to a folder with ud_chinese/ to run this test on real data")
    path = Path(folder) / "ud_chinese" / f"{name}.conllu.gz"
    sentences = read_conllu(path)
    assert len(sentences) == count
    lines = gzip.decompress(path.read_bytes()).decode().split("\n")
    texts = [line[9:] for line in lines if line.startswith("# text = ")]
    for words, text in zip(sentences, texts, strict=True):
        assert "".join(word for word, _ in words) == text.replace(" ", "")
