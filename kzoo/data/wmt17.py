"""WMT 2017 Chinese–English, the glyph paper's selection: downloaded, verified, cleaned and cached."""

import gzip
import itertools
import re
import shutil
import tempfile
import unicodedata
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from kzoo.data.downloaded_corpora import download
from kzoo.data.text_files import Text, read_lines
from kzoo.errors import UserError
from kzoo.files import cache_folder, whole_folder
from kzoo.text.languages import BETWEEN_CHINESE

LANGUAGES = ("zh", "en")
CWMT = (
    "https://huggingface.co/datasets/wmt/wmt18-data/resolve/f9b1de8f23c03a267b56e4499e4d95640db1721a/cwmt-wmt"
)


class Part(NamedTuple):
    """An archive of training text: its checksum, and name patterns of its Chinese and English members."""

    address: str
    sha256: str
    members: tuple[str, str]


# News Commentary v12, and Casia2015 and Neu2017 of CWMT: together the paper's 3,277,330 pairs. CWMT's own
# server is often down; this mirror, which public loaders of WMT's data use, has a fixed commit.
PARTS = (
    Part(
        "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",
        "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2",
        ("*/news-commentary-v12.zh-en.zh", "*/news-commentary-v12.zh-en.en"),
    ),
    Part(
        f"{CWMT}/casia2015.zip",
        "c939f1528f96c419e9bbffb9caad869616a969e7704ffac896e245a02aff59a9",
        ("casia2015/*_c[hn].txt", "casia2015/*_en.txt"),
    ),
    Part(
        f"{CWMT}/neu2017.zip",
        "5c5ea9ac5cbc43c974bd53796a3a29829800865b6398b52cda0a3854cb0d2e03",
        ("neu2017/*_c[hn].txt", "neu2017/*_en.txt"),
    ),
)
# newsdev2017 and newstest2017: sacreBLEU's name, pairs
NEWS = {"val": ("wmt17/dev", 2002), "test": ("wmt17", 2001)}

MAX_CHARACTERS = 200  # of the Chinese side
MAX_WORDS = 100  # of the English side
# Control characters except white space, direction marks, and zero-width characters with the byte order mark.
CONTROL = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def read_wmt17(split: str, language: str) -> Text:
    """Return the sentences of a split; download them if they are not in the cache.

    The training text is cleaned (`clean_pairs`) and kept in `cache_folder()/wmt17_zh_en`, both languages or
    neither. The SHA-256 of each archive is checked (as published by TensorFlow Datasets and the mirror).
    Validation and test text are from sacreBLEU, which checks their MD5; they are not cleaned.

    Args:
        split: "train", "val" (newsdev2017) or "test" (newstest2017).
        language: "zh" or "en".

    Raises:
        UserError: a download fails or fails its checks; the disk is full.

    Example:
        >>> len(read_wmt17("test", "zh").sentences)
        2001
    """
    if split != "train":
        return _news(split, language)
    folder = cache_folder() / "wmt17_zh_en"
    if not folder.is_dir():
        _make_training_folder(folder)
    return read_lines(folder / f"train.{language}.gz")


def clean_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs that are suitable for training, cleaned, in their order.

    Control and zero-width characters are removed, and the text is normalized (Unicode NFC). White space
    becomes single spaces, with none at the ends and none between Chinese characters. Duplicates are dropped,
    and pairs with an empty side, more than 200 Chinese characters or more than 100 English words.

    Args:
        pairs: (Chinese, English), one line each.

    Example:
        >>> list(clean_pairs([("你 好 ，  Tom 。", " Hello ,\\tTom ."), ("", "Nothing")]))
        [('你好， Tom 。', 'Hello , Tom .')]
    """
    seen = set()
    for chinese, english in pairs:
        pair = BETWEEN_CHINESE.sub("", _tidy(chinese)), _tidy(english)
        if not all(pair) or len(pair[0]) > MAX_CHARACTERS or len(pair[1].split()) > MAX_WORDS:
            continue
        # Only hashes are kept, to save memory: a collision among 3 million pairs has probability 3e-7.
        if hash(pair) not in seen:
            seen.add(hash(pair))
            yield pair


def _tidy(line: str) -> str:
    # Normalized last: a removed character may have separated a letter from its accent.
    return " ".join(unicodedata.normalize("NFC", CONTROL.sub("", line)).split())


def _make_training_folder(folder: Path):
    """Download, clean and keep the training text."""
    packed = cache_folder() / "wmt17_archives"  # kept until the text is ready, to download nothing twice
    archives = [
        download(part.address, part.sha256, packed / part.address.rsplit("/", 1)[-1]) for part in PARTS
    ]
    with (
        whole_folder(folder) as new,
        gzip.open(new / "train.zh.gz", "wt", encoding="utf-8", newline="\n") as chinese,
        gzip.open(new / "train.en.gz", "wt", encoding="utf-8", newline="\n") as english,
    ):
        pairs = (_pairs(part, archive, new) for part, archive in zip(PARTS, archives, strict=True))
        for zh, en in clean_pairs(itertools.chain.from_iterable(pairs)):
            chinese.write(zh + "\n")
            english.write(en + "\n")
    shutil.rmtree(packed, ignore_errors=True)


def _pairs(part: Part, archive: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a part, which is temporarily unpacked under `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        shutil.unpack_archive(archive, unpacked, **({} if archive.suffix == ".zip" else {"filter": "data"}))
        chinese, english = (next(Path(unpacked).glob(pattern)) for pattern in part.members)
        with (
            chinese.open(encoding="utf-8", newline="\n") as zh,
            english.open(encoding="utf-8", newline="\n") as en,
        ):
            yield from zip(zh, en, strict=True)


def _news(split: str, language: str) -> Text:
    """Return one side of a WMT test set, which sacreBLEU downloads to its own cache."""
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    name, pairs = NEWS[split]
    advice = (
        f"delete {SACREBLEU_DIR}/{name} and try again, or set KZOO_DATA to a folder that holds "
        f"wmt17_zh_en/{split}.{language}.gz"
    )
    try:
        path = get_source_file(name, "zh-en") if language == "zh" else get_reference_files(name, "zh-en")[0]
    except (Exception, SystemExit) as error:  # it exits on a wrong checksum; other errors share no class
        reason = "it gave up" if isinstance(error, SystemExit) else " ".join(str(error).split())
        raise UserError(f"sacreBLEU cannot download its test set {name} ({reason}): {advice}") from None
    text = read_lines(Path(path))
    if len(text.sentences) != pairs:  # interrupted while it was written
        raise UserError(f"{path} has {len(text.sentences):,} lines instead of {pairs:,}: {advice}")
    return text
