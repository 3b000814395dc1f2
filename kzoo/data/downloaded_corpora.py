"""Multi30k, Tatoeba and WMT 2017's Chinese–English: downloaded, verified, cleaned and cached."""

import contextlib
import functools
import gzip
import hashlib
import itertools
import re
import shutil
import tarfile
import unicodedata
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from kzoo.data.text_files import Text, read_lines
from kzoo.errors import UserError
from kzoo.files import atomic_folder, atomic_write, cache_folder, made_once
from kzoo.files import sha256 as sha256_of
from kzoo.text.languages import BETWEEN_CHINESE

TIMEOUT, RETRIES = 30, 2  # seconds without a byte

MULTI30K_COMMIT = "c40b37b23d6387214f8ab37335b5a8672b9745f2"  # the last to change one of the files
MULTI30K = f"https://raw.githubusercontent.com/multi30k/dataset/{MULTI30K_COMMIT}/data/task1/raw"

# SHA-256 of each file's decompressed text: the same text can be compressed in many ways.
CHECKSUMS = {
    "train.en": "460a15fbd157e34a7a9957ee388c1ca247fe47af3ef25fb50442af6c274e0fc6",
    "train.de": "2c2b73fd2b548fbcde3a875e0a78d6ee94d498bfdee6bd3eae3945779e9ddf72",
    "train.fr": "5925a3c18f1587b6b54b87743106e6e8ab93618edb6f65d19eac0621f853a10d",
    "train.cs": "2be68b38c8d586ff4f54eb13cc6e1baaaa053695b3f070d3038303a47f2268da",
    "val.en": "1f2a23d992769b5b3d209b0a10dd0b77c08cceb1f20dfb97ed0aafa49d107227",
    "val.de": "660e09eb7e1da2f856ea13ee5ad3cf6d36b3d5b0b733c857e94c5747a3dfc660",
    "val.fr": "5304e444d842e962b2dda4d816b70b22a1765b15401642b7ca37a67477e708dc",
    "val.cs": "d53827e469b0a1ca8d57e9e26b2b64c4bc4b33f5479c7b03ae87ae5c882c3e33",
    "test_2016_flickr.en": "399a4382932c1aadd3ceb9bef1008d388a64c76d4ae4e9d4728c6f4301cac182",
    "test_2016_flickr.de": "4be6b5b3236b79c25475c6bb829800a7ce559e9ba7a1f6c2394fe4d40be46d16",
    "test_2016_flickr.fr": "cb3160d69b002bb638e66cc7612fcd56cb0af82eadc9c142dedc438afb885ef6",
    "test_2016_flickr.cs": "45adb85f688de8407fddcbe1b36dca15d12aab868149b337e2576f2d6d2ff8d8",
    "test_2017_flickr.en": "ce1450ddc5ab0834502579d77a170849952e15a2938b34cc503bdc25ebb4fb98",
    "test_2017_flickr.de": "c3078bc3b36808bf9d20eb2347ed6137016179ef59ec0d2b9b8ecc3fb2880081",
    "test_2017_flickr.fr": "6f3764e31dac41e9455e612958bcfd4e877c5e15cd66df2c2b2be6d9bd83e5b6",
    "test_2017_mscoco.en": "43051fdfa86fd5395182e718a94ca67b1b227b9f7c79596ff0f6b813216981d2",
    "test_2017_mscoco.de": "58277df3c75f92f7145a11b910b553d1cf82c439249d4dc237c899609eafac22",
    "test_2017_mscoco.fr": "39cde3f43f32b0a6bf29ce4917a46329ff32e53070c2fac87506695a740ae0a0",
    "test_2018_flickr.en": "4e585c2dd525911a6ea7730e9d0b516239af3f1b1ffae6a2130223cfb639f25e",
    "test_2018_flickr.de": "39fcc8b3331d76fb42d648d019c6898b0d5e58baac87bc2a0bb93f44ec8db207",
    "test_2018_flickr.fr": "234b4a887da0da4801a3e2c6f21336231ff7dd46daeb80cfa1b551c8bbb78239",
    "test_2018_flickr.cs": "1db59fe6980c9b3f9bade65122a985e71150214837d76f4768a5a8384c0b2dc7",
}

CHINESE_ENGLISH = ("zh", "en")  # the languages of Tatoeba and of WMT 2017

TATOEBA_COMMIT = "620408eda1721f683e2413778ad19e4f94691053"
TATOEBA = (
    f"https://raw.githubusercontent.com/DaoChaShao/py-st-dl-translater-2.0/{TATOEBA_COMMIT}/data/cmn.txt"
)
TATOEBA_CHECKSUM = "9da1af87e3e61650aa38595e60baef3a4e3a18ed239a7ef4a764c0a87c7ddeff"
HELD_OUT = {"test": 1000, "val": 1000}  # pairs
LARGEST = 3  # pairs in a held-out group at most: larger groups have many variants of one sentence

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
WMT17_PARTS = (
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
WMT17_NEWS = {"val": ("wmt17/dev", 2002), "test": ("wmt17", 2001)}

WMT17_MAX_CHARACTERS = 200  # of the Chinese side
WMT17_MAX_WORDS = 100  # of the English side
# Control characters except white space, direction marks, and zero-width characters with the byte order mark.
CONTROL = re.compile("[\0-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u200b-\u200f\u202a-\u202e\u2060-\u206f\ufeff]")


def read_multi30k(split: str, language: str) -> Text:
    """Return the sentences of a split of Multi30k; download them if they are not in the cache.

    Args:
        split: such as "train" or "test_2016_flickr".
        language: "en", "de", "fr" or, if the split has it, "cs".

    Raises:
        UserError: the download fails or fails its check; the disk is full.

    Example:
        >>> read_multi30k("test_2016_flickr", "en").sentences[0]
        'A man in an orange hat starring at something.'
    """
    name = f"{split}.{language}"
    path = cache_folder() / "multi30k" / name
    return read_lines(download(f"{MULTI30K}/{name}.gz", CHECKSUMS[name], path, packed=True))


def read_tatoeba(split: str, language: str) -> Text:
    """Return the sentences of a split of Tatoeba; download them if they are not in the cache.

    Args:
        split: "train", "val" or "test".
        language: "zh" or "en".

    Raises:
        UserError: the download fails or fails its check; the disk is full.

    Example:
        >>> len(read_tatoeba("train", "zh").sentences)
        27055
    """
    path = download(TATOEBA, TATOEBA_CHECKSUM, cache_folder() / "tatoeba_zh_en" / "cmn.txt")
    side = CHINESE_ENGLISH.index(language)
    return Text(f"{path}, split {split}", [pair[side] for pair in _splits(path)[split]])


@functools.cache
def _splits(path: Path) -> dict[str, list[tuple[str, str]]]:
    rows = (line.split("\t") for line in read_lines(path).sentences)  # English, Chinese, attribution
    return split_pairs((chinese, english) for english, chinese, _ in rows)


def split_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of Chinese and English sentences of each split, without duplicates.

    Pairs that share a sentence, directly or through other pairs, form a group, which stays in one split.
    Ordered by the SHA-256 of one of their sentences, small groups fill `test`, then `val`; the rest is
    `train`.
    """
    # Not SciPy's connected components: the sentence that represents a group depends on the order in which its
    # pairs are joined. Another order would change the test set of the published scores.
    pairs, above = list(dict.fromkeys(pairs)), {}

    def top(side: str) -> str:
        while above.setdefault(side, side) != side:
            above[side] = side = above[above[side]]
        return side

    for chinese, english in pairs:
        above[top("z" + chinese)] = top("e" + english)
    groups = {}
    for pair in pairs:
        groups.setdefault(top("z" + pair[0]), []).append(pair)

    found = {**{split: [] for split in HELD_OUT}, "train": []}
    for side in sorted(groups, key=lambda side: hashlib.sha256(side.encode()).hexdigest()):
        group = groups[side]
        open_for = [split for split, count in HELD_OUT.items() if len(found[split]) < count]
        split = open_for[0] if open_for and len(group) <= LARGEST else "train"
        found[split] += group
    return found


def read_wmt17(split: str, language: str) -> Text:
    """Return the sentences of a split; download them if they are not in the cache.

    The training text is cleaned (`clean_pairs`) and cached in `cache_folder()/wmt17_zh_en`, both languages or
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
    folder = made_once(cache_folder() / "wmt17_zh_en", _make_training_folder)
    return read_lines(folder / f"train.{language}.gz")


def clean_pairs(pairs: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Yield the pairs that are suitable for training, cleaned, in the same order.

    Control and zero-width characters are removed, and the text is normalized (Unicode NFC). White space
    becomes single spaces, with none at the ends and none between Chinese characters. Duplicates and pairs
    with an empty side, more than 200 Chinese characters or more than 100 English words are dropped.

    Args:
        pairs: (Chinese, English), one line each.

    Example:
        >>> list(clean_pairs([("你 好 ，  Tom 。", " Hello ,\\tTom ."), ("", "Nothing")]))
        [('你好， Tom 。', 'Hello , Tom .')]
    """
    seen = set()
    for chinese, english in pairs:
        pair = BETWEEN_CHINESE.sub("", _tidy(chinese)), _tidy(english)
        if not all(pair) or len(pair[0]) > WMT17_MAX_CHARACTERS or len(pair[1].split()) > WMT17_MAX_WORDS:
            continue
        # Only hashes are kept, to save memory: a collision among 3 million pairs has probability 3e-7.
        if hash(pair) not in seen:
            seen.add(hash(pair))
            yield pair


def _tidy(line: str) -> str:
    # Normalized last: a removed character may have separated a letter from its accent.
    return " ".join(unicodedata.normalize("NFC", CONTROL.sub("", line)).split())


def _make_training_folder(folder: Path):
    """Download, clean and cache the training text."""
    packed = cache_folder() / "wmt17_archives"  # kept until the text is ready, to download nothing twice
    archives = [
        download(part.address, part.sha256, packed / part.address.rsplit("/", 1)[-1]) for part in WMT17_PARTS
    ]
    with (
        atomic_folder(folder) as new,
        gzip.open(new / "train.zh.gz", "wt", encoding="utf-8", newline="\n") as chinese,
        gzip.open(new / "train.en.gz", "wt", encoding="utf-8", newline="\n") as english,
    ):
        pairs = (_pairs(part, archive, new) for part, archive in zip(WMT17_PARTS, archives, strict=True))
        for zh, en in clean_pairs(itertools.chain.from_iterable(pairs)):
            chinese.write(zh + "\n")
            english.write(en + "\n")
    shutil.rmtree(packed, ignore_errors=True)


def _pairs(part: Part, archive: Path, folder: Path) -> Iterator[tuple[str, str]]:
    """Yield the pairs of a part, which is temporarily unpacked under `folder`."""
    with TemporaryDirectory(dir=folder) as unpacked:
        # Python has filters since 3.11.4. Without one, the archive's checksum says what it holds.
        filtered = archive.suffix != ".zip" and hasattr(tarfile, "data_filter")
        shutil.unpack_archive(archive, unpacked, **({"filter": "data"} if filtered else {}))
        chinese, english = (next(Path(unpacked).glob(pattern)) for pattern in part.members)
        with (
            chinese.open(encoding="utf-8", newline="\n") as zh,
            english.open(encoding="utf-8", newline="\n") as en,
        ):
            yield from zip(zh, en, strict=True)


def _news(split: str, language: str) -> Text:
    """Return one side of a WMT test set, which sacreBLEU downloads to its own cache."""
    from sacrebleu.utils import SACREBLEU_DIR, get_reference_files, get_source_file

    name, pairs = WMT17_NEWS[split]
    advice = (
        f"delete {SACREBLEU_DIR}/{name} and try again, or set KZOO_DATA to a folder that holds "
        f"wmt17_zh_en/{split}.{language}.gz"
    )
    try:
        path = get_source_file(name, "zh-en") if language == "zh" else get_reference_files(name, "zh-en")[0]
    except (Exception, SystemExit) as error:  # exits on a wrong checksum; other errors have no common class
        reason = "it gave up" if isinstance(error, SystemExit) else " ".join(str(error).split())
        raise UserError(f"sacreBLEU cannot download its test set {name} ({reason}): {advice}") from None
    text = read_lines(Path(path))
    if len(text.sentences) != pairs:  # an interrupted download
        raise UserError(f"{path} has {len(text.sentences):,} lines instead of {pairs:,}: {advice}")
    return text


def download(address: str, sha256: str, path: Path, packed: bool = False) -> Path:
    """Download a file, unless it exists with the right checksum; return its path.

    Args:
        address: its URL.
        sha256: SHA-256 of the file that is kept, 64 hexadecimal digits.
        path: path of the file; missing folders are created.
        packed: decompress the download with gzip. Servers may compress the same text differently, so `sha256`
            is that of the text.

    Raises:
        UserError: no network, no such address, a truncated or altered file, no space. Leaves no partial file.

    Example:
        >>> download("https://example.org/val.en.gz", "1f2a…", cache_folder() / "val.en", packed=True)
        PosixPath('/home/me/.cache/kzoo/val.en')
    """
    with contextlib.suppress(OSError):  # missing or unreadable
        if sha256_of(path) == sha256:
            return path
    with atomic_write(path) as file, TemporaryDirectory(dir=file.parent) as folder:
        fetched = _fetched(address, folder)
        with (
            contextlib.suppress(gzip.BadGzipFile, EOFError, zlib.error),  # then the checksum differs, too
            (gzip.open if packed else open)(fetched, "rb") as source,
            open(file, "wb") as kept,
        ):
            shutil.copyfileobj(source, kept)
        if (seen := sha256_of(file)) != sha256:
            raise UserError(f"{address}: truncated or altered: its SHA-256 is {seen} instead of {sha256}")
    return path


def _fetched(address: str, folder: str) -> Path:
    """Download a file into a folder, with retries and a progress bar on standard error."""
    import pooch

    name = address.rsplit("/", 1)[-1]
    source = pooch.create(folder, "", registry={name: None}, urls={name: address}, retry_if_failed=RETRIES)
    downloader = pooch.HTTPDownloader(progressbar=True, chunk_size=1 << 16, timeout=TIMEOUT)
    try:
        return Path(source.fetch(name, downloader=downloader))
    except OSError as error:
        if error.errno is not None:  # an error of the disk, which `atomic_write` reports
            raise
        raise UserError(
            f"{address} cannot be downloaded ({_reason(error)}); without a network, "
            "set KZOO_DATA to a folder that holds the corpus"
        ) from None


def _reason(error: OSError) -> str:
    """Return why a request failed, without class names."""
    response = getattr(error, "response", None)
    if response is not None:
        return f"HTTP status {response.status_code}"
    cause = getattr(error.args[0], "reason", error) if error.args else error
    return str(cause).rpartition(": ")[2] or type(error).__name__
