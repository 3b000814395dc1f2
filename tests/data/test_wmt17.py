"""WMT 2017 Chinese–English: pairs that are cleaned, made-up archives of the same form from a local server."""

import gzip
import hashlib
import io
import itertools
import os
import tarfile
import time
import zipfile
from concurrent.futures import ThreadPoolExecutor

import pytest
import sacrebleu.dataset
from message_of import message_of
from sacrebleu.dataset.fake_sgml import FakeSGMLDataset

from kzoo.data import downloaded_corpora, open_corpus
from kzoo.data.downloaded_corpora import WMT17_PARTS, Part, clean_pairs

# Cleaning


@pytest.mark.parametrize(
    ("chinese", "tidied"),
    [
        ("你 好 ， 世 界 。", "你好，世界。"),
        ("\ufeff 我\u3000用\tPython  3 写 程序\r\n", "我用 Python 3 写程序"),
        ("他\u200b说 ： “ 好 ”", "他说： “ 好 ”"),
        ("\U00020000 \U00020001 㐀 〇", "\U00020000\U00020001㐀〇"),
        ("\uf900 （ a ）", "豈（ a ）"),
        ("没\x00有\x1b变\x9f化", "没有变化"),
    ],
)
def test_chinese_side(chinese, tidied):
    assert list(clean_pairs([(chinese, "x")])) == [(tidied, "x")]


@pytest.mark.parametrize(
    ("english", "tidied"),
    [
        ("  A  dog ,\ta cat .\r\n", "A dog , a cat ."),
        ("cafe\u0301", "café"),
        ("cafe\u200d\u0301", "café"),
        ("so\u00adft hy\u200bphen\ufeff \x07", "soft hyphen"),
        ("one\u2028two\x85three\xa0four", "one two three four"),
        ("你 好", "你 好"),  # only the Chinese side is joined
    ],
)
def test_english_side(english, tidied):
    assert list(clean_pairs([("字", english)])) == [("字", tidied)]


def test_what_is_dropped():
    kept = [("字" * 200, "w " * 99 + "w"), ("甲", "one"), ("甲", "two"), ("乙", "one"), ("丙 a", "3")]
    dropped = [
        ("字" * 201, "x"),
        ("字", "w " * 101),
        ("", "x"),
        ("字", " \ufeff\n"),
        ("甲 ", " one"),
        ("甲", "two"),
    ]
    assert list(clean_pairs(kept + dropped)) == kept
    assert list(clean_pairs([("字 " * 200, "x")])) == [("字" * 200, "x")]  # counted when tidied


def test_pairs_are_cleaned_as_they_come():
    endless = ((str(number), str(number)) for number in itertools.count())
    assert list(itertools.islice(clean_pairs(endless), 3)) == [("0", "0"), ("1", "1"), ("2", "2")]


# Training text


def tgz(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return packed.getvalue()


def zipped(members: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return packed.getvalue()


NEWS = {
    "training/news-commentary-v12.de-en.en": b"no\n",
    "training/news-commentary-v12.zh-en.en": b"News one .\n\nThe same .\n",
    "training/news-commentary-v12.zh-en.zh": "新闻 一 。\n空\n一样 。\n".encode(),
}
CASIA = {
    "casia2015/": b"",
    "casia2015/casia2015_ch.txt": "第 一\r\n一样 。".encode(),  # no line feed at the end
    "casia2015/casia2015_en.txt": b"The first\r\nThe same .",
    "__MACOSX/casia2015/._casia2015_ch.txt": b"\xff",
}
NEU = {"neu2017/NEU_cn.txt": "\u2028三\n".encode(), "neu2017/NEU_en.txt": "thr\u0085ee\n".encode()}


@pytest.fixture
def wmt(server, monkeypatch, tmp_path):
    """Put archives of the same form in place of the real ones; a function that puts others there."""
    names = [part.address.rsplit("/", 1)[-1] for part in WMT17_PARTS]

    def publish():
        packed = tgz(NEWS), zipped(CASIA), zipped(NEU)
        parts = []
        for part, name, data in zip(WMT17_PARTS, names, packed, strict=True):
            server.files[f"/{name}"] = data
            address, sha256 = f"{server.address}/{name}", hashlib.sha256(data).hexdigest()
            parts.append(Part(address, sha256, part.members))
        monkeypatch.setattr(downloaded_corpora, "WMT17_PARTS", parts)
        return open_corpus("wmt17_zh_en")

    monkeypatch.setenv("KZOO_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv("KZOO_DATA", raising=False)
    publish.cache, publish.names = tmp_path / "cache", names
    return publish


TRAIN = (
    ["新闻一。", "一样。", "第一", "三"],
    ["News one .", "The same .", "The first", "thr ee"],
)


def test_training_text_is_downloaded_cleaned_and_kept(server, wmt):
    corpus = wmt()
    assert (corpus.languages, corpus.splits) == (("zh", "en"), ("train", "val", "test"))
    assert corpus.pairs("train", "zh", "en") == TRAIN
    assert corpus.pairs("train", "en", "zh") == TRAIN[::-1]
    assert server.asked == [f"/{name}" for name in wmt.names]  # once each
    assert sorted(os.listdir(wmt.cache)) == ["wmt17_zh_en", "wmt17_zh_en.lock"]
    assert sorted(os.listdir(wmt.cache / "wmt17_zh_en")) == ["train.en.gz", "train.zh.gz"]
    text = gzip.decompress((wmt.cache / "wmt17_zh_en" / "train.zh.gz").read_bytes())
    assert text.decode() == "".join(f"{line}\n" for line in TRAIN[0])


def test_two_that_need_the_training_text_at_once_make_it_once(wmt, monkeypatch):
    corpus, made = wmt(), []

    def clean_slowly(pairs):
        made.append(1)
        time.sleep(0.5)
        return clean_pairs(pairs)

    monkeypatch.setattr(downloaded_corpora, "clean_pairs", clean_slowly)
    with ThreadPoolExecutor() as threads:
        found = threads.map(lambda language: corpus.sentences("train", language), ("zh", "en"))
        assert list(found) == list(TRAIN)
    assert len(made) == 1


def test_the_users_own_folder_comes_first(server, wmt, monkeypatch, tmp_path):
    corpus = wmt()
    own = tmp_path / "own" / "wmt17_zh_en"
    own.mkdir(parents=True)
    for split, language in itertools.product(("train", "val", "test"), ("zh", "en")):
        (own / f"{split}.{language}.gz").write_bytes(gzip.compress(f"{split} {language}\n".encode()))
    monkeypatch.setenv("KZOO_DATA", str(tmp_path / "own"))
    for split in corpus.splits:
        assert corpus.pairs(split, "zh", "en") == ([f"{split} zh"], [f"{split} en"])
    assert server.asked == []


def test_a_truncated_archive_leaves_nothing_and_the_others_stay(server, wmt):
    corpus = wmt()
    whole = server.files["/neu2017.zip"]
    server.files["/neu2017.zip"] = whole[:-20]
    message = message_of(corpus.sentences, "train", "zh")
    assert message.startswith(f"{server.address}/neu2017.zip: ")
    assert hashlib.sha256(whole).hexdigest() in message
    assert sorted(os.listdir(wmt.cache)) == ["wmt17_archives", "wmt17_zh_en.lock"]
    assert sorted(os.listdir(wmt.cache / "wmt17_archives")) == sorted(wmt.names[:2])
    server.files["/neu2017.zip"] = whole
    assert corpus.sentences("train", "zh") == TRAIN[0]
    assert server.asked == [f"/{name}" for name in [*wmt.names, "neu2017.zip"]]


def test_the_official_archives():
    real = sacrebleu.dataset.DATASETS
    assert all("zh-en" in real[name].langpairs for name, _ in downloaded_corpora.WMT17_NEWS.values())


# Validation and test text


@pytest.fixture
def news(server, monkeypatch, tmp_path):
    """Put two sentences in place of sacreBLEU's test set; a function that returns it."""
    segments = {
        "src.zh": '<doc docid="1">\n<seg id="1">你 好 &amp;</seg>\n<seg id="2"> 二  </seg>\n</doc>\n',
        "ref.en": '<doc docid="1">\n<seg id="1">Hello  you</seg>\n<seg id="2">Two</seg>\n</doc>\n',
    }
    files = {f"test/newstest2017-zhen-{name}.sgm": text.encode() for name, text in segments.items()}
    packed = tgz(files)
    server.files["/test.tgz"] = packed
    dataset = FakeSGMLDataset(
        "wmt17",
        data=[f"{server.address}/test.tgz"],
        md5=[hashlib.md5(packed).hexdigest()],
        langpairs={"zh-en": list(files)},
    )
    dataset._outdir = str(tmp_path / "sacrebleu")
    dataset._rawdir = str(tmp_path / "sacrebleu" / "raw")
    monkeypatch.setitem(sacrebleu.dataset.DATASETS, "wmt17", dataset)
    monkeypatch.setattr(downloaded_corpora, "WMT17_NEWS", {"val": ("wmt17/dev", 2002), "test": ("wmt17", 2)})
    monkeypatch.delenv("KZOO_DATA", raising=False)
    return dataset


def test_test_text_comes_through_sacrebleu(server, news):
    corpus = open_corpus("wmt17_zh_en")
    assert corpus.pairs("test", "zh", "en") == (["你 好 &amp;", "二"], ["Hello you", "Two"])  # not cleaned
    assert corpus.sentences("test", "en") == ["Hello you", "Two"]
    assert server.asked == ["/test.tgz"]


@pytest.mark.parametrize("fault", ["gone", "altered", "not an archive", "broken off"])
def test_what_sacrebleu_cannot_do_is_one_line(server, news, monkeypatch, fault):
    if fault == "gone":
        del server.files["/test.tgz"]
        reason = "HTTP Error 404: Not Found"
    elif fault == "altered":  # sacreBLEU leaves the interpreter
        news.md5, reason = ["0" * 32], "it gave up"
    elif fault == "not an archive":
        server.files["/test.tgz"] = b"<html>"
        news.md5, reason = [hashlib.md5(b"<html>").hexdigest()], "not a gzip file"
    else:
        monkeypatch.setitem(downloaded_corpora.WMT17_NEWS, "test", ("wmt17", 3))
        reason = "has 2 lines instead of 3"
    message = message_of(open_corpus("wmt17_zh_en").sentences, "test", "en")
    assert reason in message and "wmt17" in message
    assert "delete" in message and "KZOO_DATA" in message and "wmt17_zh_en/test.en.gz" in message
