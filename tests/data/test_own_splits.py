"""A text split by itself: no sentence of either side stands in two splits."""

import itertools

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import open_files, own_files
from kzoo.data.own_files import split_rows


def repeating(random, count=400):
    """Pairs of which many share a side."""
    return [[f"{side} {number}" for number in random.integers(0, count, count)] for side in ("en", "de")]


def test_splits_share_no_sentence(random):
    sides = repeating(random)
    found = split_rows(sides, {"val": 30, "test": 0.1})
    assert {name: len(rows) for name, rows in found.items()} == {"train": 330, "val": 30, "test": 40}
    assert sorted(np.concatenate(list(found.values()))) == list(range(400))
    for one, other in itertools.combinations(found.values(), 2):
        for side in sides:
            assert not {side[row] for row in one} & {side[row] for row in other}
    again = split_rows(sides, {"val": 30, "test": 0.1})
    assert all((found[name] == again[name]).all() for name in found)


def test_further_rows_and_sizes_hardly_change_what_is_held_out(random):
    """A second run must not hold out what the first was trained on: its test would be too easy."""
    sides = [[f"{side} {number}" for number in range(1100)] for side in ("en", "de")]

    def split(count, **parts):
        return {name: set(rows) for name, rows in split_rows([side[:count] for side in sides], parts).items()}

    first = split(1000, val=50, test=50)
    for second in (split(1001, val=50, test=50), split(1100, val=50, test=50), split(1000, val=90, test=50)):
        assert not second["test"] & first["train"]
    assert split(1000, test=50)["test"] == first["test"]
    swapped = split_rows(sides[::-1], {"val": 50, "test": 50})
    assert set(swapped["test"]) == split(1100, val=50, test=50)["test"]


def test_rows_that_all_hang_together_cannot_be_split():
    sides = [["a", "a", "b", "c"], ["x", "y", "y", "z"]]
    assert sorted(split_rows(sides, {"test": 1})["test"]) == [3]
    assert "2 of 4 rows cannot be held out, at most 1 can" in message_of(split_rows, sides, {"test": 2})
    assert "val: a share of 0.01 of 4 rows is none" in message_of(split_rows, sides, {"val": 0.01})
    assert "val: holding out 1 of 1 rows" in message_of(split_rows, [["a"], ["x"]], {"val": 1})
    assert "val: holding out 5 of 2 rows" in message_of(split_rows, [["a", "b"], ["x", "y"]], {"val": 5})


def test_empty_sentences_hold_nothing_together():
    assert len(split_rows([["", "", "a"], ["x", "y", "z"]], {"test": 1, "val": 1})["val"]) == 1


@pytest.mark.parametrize("files", [("train.en", "train.de"), "train.tsv"])
def test_a_corpus_of_one_text(files, random, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sides = repeating(random)
    for name, side in zip(("train.en", "train.de"), sides, strict=True):
        (tmp_path / name).write_text("\n".join(side))
    (tmp_path / "train.tsv").write_text("\n".join(map("\t".join, zip(*sides, strict=True))))
    read = []
    for reader in ("_read_text", "table_rows"):
        whole = getattr(own_files, reader)
        monkeypatch.setattr(own_files, reader, lambda *a, whole=whole: read.append(a[0]) or whole(*a))
    corpus = open_files(train=files, val=0.05, test=10)
    assert corpus.splits == ("train", "val", "test")
    pairs = [list(zip(*corpus.pairs(split, "en", "de"), strict=True)) for split in corpus.splits]
    assert [len(some) for some in pairs] == [370, 20, 10]
    assert sorted(sum(pairs, [])) == sorted(zip(*sides, strict=True))
    assert len(read) == 2  # once a side
    assert "train, which has no files" in message_of(open_files, None, 10, files)
