"""Corpora: line by line as in the files, and one clear line about everything that can be wrong with them."""

import gzip
import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import CORPORA, Extractor, downloaded_corpora, open_corpus, open_files, write_features
from kzoo.data.downloaded_corpora import CHECKSUMS
from kzoo.scenes import LANGUAGES, scenes

LINES_OF_SPLIT = {
    "train": 29000,
    "val": 1014,
    "test_2016_flickr": 1000,
    "test_2017_flickr": 1000,
    "test_2017_mscoco": 461,
    "test_2018_flickr": 1071,
}


def real_data(name: str) -> Path:
    folder = os.environ.get("KZOO_DATA")
    if not folder or not (Path(folder) / name).is_dir():
        pytest.skip(f"KZOO_DATA names no folder that holds {name}")
    return Path(folder) / name


@pytest.fixture
def no_network(monkeypatch):
    def refuse(*args, **options):
        raise AssertionError("a download was tried")

    monkeypatch.setattr(downloaded_corpora, "download", refuse)


# The user's own files


def write_pair(folder: Path, source: bytes, target: bytes) -> tuple[Path, Path]:
    paths = folder / "source.txt", folder / "target.txt"
    for path, data in zip(paths, (source, target), strict=True):
        path.write_bytes(data)
    return paths


def test_a_pair_of_files_is_read_in_both_directions(tmp_path):
    corpus = open_files(train=write_pair(tmp_path, b"a\nb\n", b"x\ny\n"), languages=("id", "zh"))
    assert (corpus.name, corpus.splits, corpus.languages) == ("files", ("train",), ("id", "zh"))
    assert corpus.pairs("train", "id", "zh") == (["a", "b"], ["x", "y"])
    assert corpus.pairs("train", "zh", "id") == (["x", "y"], ["a", "b"])


@pytest.mark.parametrize("name", ["both.tsv", "both.tsv.gz"])
def test_tsv(tmp_path, name):
    data = b"ein Hund\ta dog\r\nzwei\ttwo\n\tthree\n"
    path = tmp_path / name
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    corpus = open_files(train=str(path), languages=["de", "en"])
    assert corpus.pairs("train", "de", "en") == (["ein Hund", "zwei", ""], ["a dog", "two", "three"])


@pytest.mark.parametrize("row, columns", [(b"only", 1), (b"", 1), (b"a\tb\tc", 3)])
def test_tsv_row_without_two_columns(tmp_path, row, columns):
    path = tmp_path / "both.tsv"
    path.write_bytes(b"a\tb\n" + row + b"\nc\td\n")
    message = message_of(open_files(train=path).sentences, "train", "en")
    assert message.startswith(f"{path}, line 2: {columns} columns")


def test_unequal_line_counts_name_both_files_and_counts(tmp_path):
    source, target = write_pair(tmp_path, b"a\n" * 1200, b"x\n" * 1199)
    message = message_of(open_files(train=(source, target)).pairs, "train", "en", "de")
    assert all(part in message for part in (str(source), "1,200", str(target), "1,199"))


@pytest.mark.parametrize("data", [b"", b"\n", b" \n\r\n"])
def test_empty_corpus(tmp_path, data):
    source, target = write_pair(tmp_path, b"a\n", data)
    message = message_of(open_files(test=(source, target)).pairs, "test", "en", "de")
    assert message.startswith(f"{target} is empty")


def test_missing_file_is_told_on_opening(tmp_path):
    source, _ = write_pair(tmp_path, b"a\n", b"x\n")
    gone = tmp_path / "gone.de"
    assert str(gone) in message_of(open_files, val=(source, gone))
    assert str(tmp_path) in message_of(open_files, val=(source, tmp_path))  # a folder


def test_file_that_vanishes_after_opening(tmp_path):
    source, target = write_pair(tmp_path, b"a\n", b"x\n")
    corpus = open_files(train=(source, target))
    target.unlink()
    assert message_of(corpus.pairs, "train", "en", "de").startswith(f"{target}: ")


def test_neither_a_pair_nor_a_tsv(tmp_path):
    source, target = write_pair(tmp_path, b"a\n", b"x\n")
    for paths in (source, str(source), (), (source,), (source, target, source)):
        assert "aligned" in message_of(open_files, train=paths)
    assert "val and test" in message_of(open_files)
    for languages in ("ende", ("en",), ("en", "en"), ("en", "de", "en")):
        assert "languages" in message_of(open_files, train=(source, target), languages=languages)


def test_missing_split_and_language(tmp_path):
    corpus = open_files(train=write_pair(tmp_path, b"a\n", b"x\n"))
    assert "'val'" in message_of(corpus.sentences, "val", "en")
    assert "'fr'" in message_of(corpus.pairs, "train", "en", "fr")


def test_own_files_in_three_languages(tmp_path):
    for language in ("en", "de", "fr"):
        (tmp_path / f"train.{language}").write_text(f"{language} one\n{language} two\n")
    files = [tmp_path / f"train.{language}" for language in ("en", "de", "fr")]
    corpus = open_files(train=files, languages=("en", "de", "fr"))
    assert corpus.pairs("train", "fr", "en") == (["fr one", "fr two"], ["en one", "en two"])
    (tmp_path / "train.tsv").write_text("a\tb\tc\nd\te\n")
    table = open_files(train=tmp_path / "train.tsv", languages=("en", "de", "fr"))
    assert "line 2: 2" in message_of(table.pairs, "train", "en", "de")
    assert " 3 " in message_of(open_files, train=files[:2], languages=("en", "de", "fr"))


def test_features_in_a_folder_of_the_users_home(monkeypatch, tmp_path):
    """As a recipe may name it; its text files may be there too."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KZOO_DATA", raising=False)
    rows = np.arange(6, dtype="float32").reshape(2, 3)
    extractor = Extractor("vgg19", "fc2", "random", seed=1)
    write_features(tmp_path / "features" / "train.npy", lambda names: [rows], ["a.jpg", "b.jpg"], extractor)
    (tmp_path / "features" / "train.txt").write_text("b.jpg#0\na.jpg#0\n")
    write_pair(tmp_path, b"a\nb\n", b"x\ny\n")
    corpus = open_files(train=("~/source.txt", "~/target.txt")).with_images("~/features")
    np.testing.assert_array_equal(corpus.images("train")[:], rows[::-1])
    (tmp_path / "features" / "train.txt").unlink()  # it is read once
    np.testing.assert_array_equal(corpus.images("train")[:], rows[::-1])


def test_a_name_that_begins_with_a_tilde(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    write_pair(tmp_path, b"a\n", b"x\n")[0].rename("~no user.en")
    assert open_files(train=("~no user.en", "target.txt")).pairs("train", "en", "de") == (["a"], ["x"])


# The named corpora


def test_unknown_corpus_says_the_nearest():
    assert "multi30k?" in message_of(open_corpus, "multi30")
    message = message_of(open_corpus, "wmt")
    assert all(name in message for name in CORPORA)


def test_opening_reads_nothing(no_network, monkeypatch, tmp_path):
    monkeypatch.setenv("KZOO_DATA", str(tmp_path / "gone"))
    for name in ("multi30k", "tatoeba_zh_en"):
        corpus = open_corpus(name)
        assert corpus.name == name and corpus.licence and corpus.citation


def test_multi30k_says_what_exists(no_network, monkeypatch):
    monkeypatch.delenv("KZOO_DATA", raising=False)
    corpus = open_corpus("multi30k")
    assert corpus.splits == tuple(LINES_OF_SPLIT)
    for split in corpus.splits:
        assert corpus.languages_in(split) == ("en", "de", "fr") + ("cs",) * ("2017" not in split)
    message = message_of(corpus.pairs, "test_2017_mscoco", "en", "cs")
    assert "test_2018_flickr" in message and "test_2017_flickr" not in message
    assert "cs" in message_of(corpus.sentences, "val", "cz")
    assert "test_2016_flickr" in message_of(corpus.sentences, "test_2016", "en")


def test_every_file_of_multi30k_has_a_checksum():
    corpus = open_corpus("multi30k")
    names = {f"{split}.{language}" for split in corpus.splits for language in corpus.languages_in(split)}
    assert names == set(CHECKSUMS)


def test_multi30k_from_the_users_folder(no_network, monkeypatch, tmp_path):
    (tmp_path / "multi30k").mkdir()
    (tmp_path / "multi30k" / "val.en.gz").write_bytes(gzip.compress(b"not the official text\n"))
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    corpus = open_corpus("multi30k")
    assert corpus.sentences("val", "en") == ["not the official text"]
    (tmp_path / "multi30k" / "val.en.gz").unlink()  # it is read once
    assert corpus.sentences("val", "en") == ["not the official text"]


@pytest.mark.parametrize("elsewhere", [False, True])
def test_multi30k_is_downloaded_into_the_cache(server, monkeypatch, tmp_path, elsewhere):
    monkeypatch.setattr(downloaded_corpora, "MULTI30K", f"{server.address}/raw")
    texts = {"val.en": b"A dog .\nA cat .\n", "val.de": "Ein Hund .\nZwei Mäuse .\n".encode()}
    for name, text in texts.items():
        server.files[f"/raw/{name}.gz"] = gzip.compress(text)
        monkeypatch.setitem(CHECKSUMS, name, hashlib.sha256(text).hexdigest())
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KZOO_DATA", raising=False)
    if elsewhere:  # a folder of other corpora does not stand in the way
        monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    pairs = open_corpus("multi30k").pairs("val", "en", "de")
    assert pairs == (["A dog .", "A cat ."], ["Ein Hund .", "Zwei Mäuse ."])
    assert sorted(server.asked) == ["/raw/val.de.gz", "/raw/val.en.gz"]
    assert (tmp_path / "cache" / "multi30k" / "val.de").read_bytes() == texts["val.de"]


def test_a_wrong_kzoo_data_is_told(no_network, monkeypatch, tmp_path):
    monkeypatch.setenv("KZOO_DATA", str(tmp_path / "gone"))
    message = message_of(open_corpus("multi30k").sentences, "val", "en")
    assert "KZOO_DATA" in message and str(tmp_path / "gone") in message


@pytest.mark.parametrize("language", ["en", "de", "fr", "cs"])
def test_real_multi30k(no_network, language):
    folder = real_data("multi30k")
    corpus = open_corpus("multi30k")
    for split, count in LINES_OF_SPLIT.items():
        if language not in corpus.languages_in(split):
            continue
        text = gzip.decompress((folder / f"{split}.{language}.gz").read_bytes())
        assert hashlib.sha256(text).hexdigest() == CHECKSUMS[f"{split}.{language}"]
        sentences = corpus.sentences(split, language)
        assert len(sentences) == count
        assert "".join(f"{sentence}\n" for sentence in sentences).encode() == text
        assert len(corpus.pairs(split, "en", language)[1]) == count


def test_real_tatoeba():
    real_data("tatoeba_zh_en")
    corpus = open_corpus("tatoeba_zh_en")
    assert [len(corpus.pairs(split, "zh", "en")[0]) for split in corpus.splits] == [27055, 1000, 1000]


def test_scenes_are_sentences_of_the_scenes():
    corpus = open_corpus("scenes")
    assert (corpus.splits, corpus.languages) == (("train", "val", "test"), tuple(LANGUAGES))
    for language, sentences in zip(("en", "id"), corpus.pairs("val", "en", "id"), strict=True):
        assert sentences == [scene.sentence(language) for scene in scenes("val")]


def test_a_corpus_under_other_codes_has_the_same_text():
    scenes = open_corpus("scenes")
    named = scenes.renamed("eng_Latn", "deu", "xx")
    assert named.languages[:3] == ("eng_Latn", "deu", "fr")
    assert named.pairs("val", "eng_Latn", "deu") == scenes.pairs("val", "en", "de")
    absent = open_corpus("multi30k").renamed("ces")
    assert ("test_2017_flickr", "ces") in absent.absent
    assert "ces" not in absent.languages_in("test_2017_flickr")
