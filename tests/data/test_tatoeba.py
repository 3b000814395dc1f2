"""Tatoeba's pairs: split so that no sentence of a test is in the training text, and read from one file."""

import hashlib
from itertools import combinations

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from kzoo.data import downloaded_corpora, open_corpus
from kzoo.data.downloaded_corpora import split_pairs


def some_pairs(count: int) -> list[tuple[str, str]]:
    """Pairs of which some share a side, and some are there twice."""
    random = np.random.default_rng(0)
    return [(f"zh {z}", f"en {e}") for z, e in random.integers(0, 2 * count, (count, 2))] * 2


def test_no_split_shares_a_sentence_with_another():
    pairs = some_pairs(4000)
    splits = split_pairs(pairs)
    assert sorted(pair for split in splits.values() for pair in split) == sorted(set(pairs))
    assert len(splits["test"]) >= 1000 and len(splits["val"]) >= 1000
    for one, other in combinations(splits.values(), 2):
        for side in (0, 1):
            assert not {pair[side] for pair in one} & {pair[side] for pair in other}


def test_held_out_groups_are_small():
    pairs = list(dict.fromkeys(some_pairs(4000)))
    numbers = {side: number for number, side in enumerate({side for pair in pairs for side in pair})}
    rows, columns = np.array([[numbers[side] for side in pair] for pair in pairs]).T
    graph = coo_array((np.ones(len(pairs)), (rows, columns)), (len(numbers), len(numbers)))
    _, label = connected_components(graph, directed=False)
    sizes = np.bincount(label[rows])
    splits = split_pairs(pairs)
    held_out = {label[numbers[chinese]] for split in ("test", "val") for chinese, _ in splits[split]}
    assert max(sizes[list(held_out)]) == 3 < max(sizes)


def test_read_from_the_cache_when_it_is_not_in_the_folder(monkeypatch, tmp_path):
    """The file has English first, and an attribution."""
    text = "Hi.\t嗨。\tby a\nHi.\t你好。\tby b\nRun.\t跑。\tby c\n"
    (tmp_path / "tatoeba_zh_en").mkdir()
    (tmp_path / "tatoeba_zh_en" / "cmn.txt").write_text(text, "utf-8")
    monkeypatch.setattr(downloaded_corpora, "TATOEBA_CHECKSUM", hashlib.sha256(text.encode()).hexdigest())
    monkeypatch.setattr(downloaded_corpora, "HELD_OUT", {"test": 1, "val": 1})
    monkeypatch.setenv("KZOO_CACHE", str(tmp_path))
    monkeypatch.delenv("KZOO_DATA", raising=False)
    corpus = open_corpus("tatoeba_zh_en")
    found = {tuple(zip(*corpus.pairs(split, "zh", "en"), strict=True)) for split in ("test", "val")}
    assert found == {(("嗨。", "Hi."), ("你好。", "Hi.")), (("跑。", "Run."),)}
