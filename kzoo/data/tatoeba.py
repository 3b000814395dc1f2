"""Tatoeba's Chinese–English pairs: downloaded, verified, and split so that no test sentence is trained on.

`kzoo.data.corpora` opens them as `tatoeba_zh_en`.
"""

import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path

from kzoo.data.download import download_archive
from kzoo.data.text_files import Text, read_lines
from kzoo.files import cache_folder

LANGUAGES = "zh", "en"
COMMIT = "620408eda1721f683e2413778ad19e4f94691053"
ADDRESS = f"https://raw.githubusercontent.com/DaoChaShao/py-st-dl-translater-2.0/{COMMIT}/data/cmn.txt"
CHECKSUM = "9da1af87e3e61650aa38595e60baef3a4e3a18ed239a7ef4a764c0a87c7ddeff"
HELD_OUT = {"test": 1000, "val": 1000}  # pairs
LARGEST = 3  # pairs of a held-out group: a larger one would be many variants of one sentence


def read_tatoeba(split: str, language: str) -> Text:
    """Return the sentences of a split; the pairs are downloaded if they are not in the cache.

    Args:
        split: "train", "val" or "test".
        language: "zh" or "en".

    Raises:
        UserError: the download fails or fails its check; the disk is full.

    Example:
        >>> len(read_tatoeba("train", "zh").sentences)
        27055
    """
    path = download_archive(ADDRESS, CHECKSUM, cache_folder() / "tatoeba_zh_en" / "cmn.txt")
    side = LANGUAGES.index(language)
    return Text(f"{path}, split {split}", [pair[side] for pair in _splits(path)[split]])


@functools.cache
def _splits(path: Path) -> dict[str, list[tuple[str, str]]]:
    rows = (line.split("\t") for line in read_lines(path).sentences)  # English, Chinese, attribution
    return split_pairs((chinese, english) for english, chinese, _ in rows)


def split_pairs(pairs: Iterable[tuple[str, str]]) -> dict[str, list[tuple[str, str]]]:
    """Return the pairs of Chinese and English sentences of each split, without duplicates.

    Pairs that share a side, also by way of others, form a group, which stays in one split. In the order of
    the SHA-256 of one of their sentences, small groups fill `test`, then `val`; all others are `train`.
    """
    # Not SciPy's components: the sentence that orders a group follows from the order in which its pairs were
    # joined, and with another one the test set would no longer be that of the published scores.
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
