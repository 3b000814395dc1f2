"""The taggers' text: no test sentence is trained on."""

import pytest

from kzoo.errors import UserError
from training.glyph import treebanks


def test_no_tagged_test_sentence_is_trained_on(monkeypatch, tmp_path):
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    (tmp_path / "ud_chinese").mkdir()
    tests = set(treebanks.TAGGED_TESTS.values())

    def read_conllu(path):
        name = path.name.removesuffix(".conllu.gz")
        # The last sentence of every file has the same text, in other words.
        last = [("两", "NUM"), ("词", "NOUN")] if name in tests else [("两词", "NOUN")]
        return [*[[(f"{name} {number}", "NOUN")] for number in range(20)], [(f"{name} 0", "NOUN")], last]

    monkeypatch.setattr(treebanks, "read_conllu", read_conllu)
    training, validation, found = treebanks.universal_dependencies()
    assert {len(sentences) for sentences in found.values()} == {22}
    assert (len(training), len(validation)) == (72, 8)
    texts = [treebanks.text_of(sentence) for sentence in [*training, *validation]]
    assert len(set(texts)) == 80
    assert not {text for text in texts if text == "两词" or text.split()[0] in tests}


@pytest.mark.parametrize("read", [treebanks.universal_dependencies, treebanks.chinese_treebank])
def test_the_folder_must_be_named(read, monkeypatch):
    monkeypatch.delenv("KZOO_DATA", raising=False)
    with pytest.raises(UserError, match="KZOO_DATA"):
        read()
