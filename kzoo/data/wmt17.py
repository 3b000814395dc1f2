"""WMT 2017 Chinese–English, the glyph paper's selection: downloaded, verified, cleaned and cached."""

import contextlib
import fnmatch
import gzip
import itertools
import re
import shutil
import tarfile
import tempfile
import unicodedata
import zipfile
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, NamedTuple

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
    """An archive of training text: checksum, name patterns of its Chinese and English members, and pairs."""

    address: str
    sha256: str
    members: tuple[str, str]
    pairs: int


# News Commentary v12, and Casia2015 and Neu2017 of CWMT: together the paper's 3,277,330 pairs. CWMT's own
# server is often down; this mirror, which public loaders of WMT's data use, has a fixed commit.
PARTS = (
    Part(
        "https://data.statmt.org/wmt17/translation-task/training-parallel-nc-v12.tgz",
        "2b45f30ef1d550d302fd17dd3a5cbe19134ccc4c2cf50c2dae534aee600101a2",
        ("*/news-commentary-v12.zh-en.zh", "*/news-commentary-v12.zh-en.en"),
        227_330,
    ),
    Part(
        f"{CWMT}/casia2015.zip",
        "c939f1528f96c419e9bbffb9caad869616a969e7704ffac896e245a02aff59a9",
        ("casia2015/*_c[hn].txt", "casia2015/*_en.txt"),
        1_050_000,
    ),
    Part(
        f"{CWMT}/neu2017.zip",
        "5c5ea9ac5cbc43c974bd53796a3a29829800865b6398b52cda0a3854cb0d2e03",
        ("neu2017/*_c[hn].txt", "neu2017/*_en.txt"),
        2_000_000,
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
    neither. Three checks: the SHA-256 of each archive (as published by TensorFlow Datasets and the mirror),
    equal numbers of lines in its two sides, and the paper's total. Validation and test text are from
    sacreBLEU, which checks their MD5; they are not cleaned.

    Args:
        split: "train", "val" (newsdev2017) or "test" (newstest2017).
        language: "zh" or "en".

    Raises:
        UserError: a download fails or fails its checks; the disk is full.

    Example:
        >>> len(read_wmt17("test", "zh").sentences)
        2001
    """
    return (
        read_lines(_training_folder() / f"train.{language}.gz")
        if split == "train"
        else _news(split, language)
    )


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


def _training_folder() -> Path:
    """Return the folder of the cleaned training text; make it if it is missing."""
    folder = cache_folder() / "wmt17_zh_en"
    if _is_whole(folder):
        return folder
    try:
        _make_training_folder(folder)
    except UserError:
        if not _is_whole(folder):  # else another process has made it, and removed the archives
            raise
    return folder


def _is_whole(folder: Path) -> bool:
    return all((folder / f"train.{language}.gz").is_file() for language in LANGUAGES)


def _make_training_folder(folder: Path):
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
    """Yield the pairs of a part; its members are temporarily unpacked under `folder`."""
    with tempfile.TemporaryDirectory(dir=folder) as unpacked:
        files = [Path(unpacked) / language for language in LANGUAGES]
        with _opened(archive) as (names, open_member):
            for pattern, file in zip(part.members, files, strict=True):
                found = fnmatch.filter(names, pattern)
                if len(found) != 1:
                    raise UserError(
                        f"{part.address}: {len(found)} members are called {pattern} instead of one; "
                        f"it has {', '.join(names[:20])}"
                    )
                with open_member(found[0]) as member, file.open("wb") as target:
                    shutil.copyfileobj(member, target)
        counts = [_line_count(file) for file in files]
        if counts != [part.pairs] * 2:
            raise UserError(
                f"{part.address}: {counts[0]:,} lines in zh and {counts[1]:,} in en "
                f"instead of {part.pairs:,} in each"
            )
        with files[0].open("rb") as chinese, files[1].open("rb") as english:
            for number, (zh, en) in enumerate(zip(chinese, english, strict=True), 1):
                try:
                    yield zh.decode(), en.decode()
                except UnicodeDecodeError as error:
                    raise UserError(
                        f"{part.address}: not valid UTF-8 in pair {number:,} ({error.reason})"
                    ) from None


@contextlib.contextmanager
def _opened(archive: Path) -> Iterator[tuple[list[str], Callable[[str], IO[bytes]]]]:
    """Yield the names of an archive's members, and a function that opens one."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive) as file:
            yield file.namelist(), file.open
    else:
        with tarfile.open(archive) as file:
            yield file.getnames(), file.extractfile


def _line_count(file: Path) -> int:
    with file.open("rb") as lines:
        return sum(1 for _ in lines)


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
