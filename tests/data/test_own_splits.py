"""A text split by itself: no sentence of either side stands in two splits."""

import itertools

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import open_files
from kzoo.data.held_out import split_rows


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


def test_what_is_held_out_is_like_the_text_but_for_large_groups(random):
    """A validation set was once half two groups, each of one sentence's variants."""
    kinds, shares = [1, 2, 3, 8, 60], [0.5, 0.2, 0.15, 0.1, 0.05]
    sizes = random.choice(kinds, 2000, p=shares)
    rows = random.permutation(  # each shares one side with the next of its group
        [
            (f"en {group} {n // 2}", f"de {group} {(n + 1) // 2}")
            for group, size in enumerate(sizes)
            for n in range(size)
        ]
    )
    found = split_rows(rows.T.tolist(), {"val": 500, "test": 500})
    for split in ("val", "test"):
        assert len(found[split]) == 500
        held_out = {int(rows[row][0].split()[1]) for row in found[split]}
        assert sum(sizes[group] for group in held_out) == 500  # whole groups
        counts = [sum(sizes[group] == kind for group in held_out) for kind in kinds]
        assert counts[3:] == [0, 0]
        chances = np.array(shares[:3]) / sum(shares[:3])
        expected = len(held_out) * chances
        assert (abs(counts[:3] - expected) < 3 * np.sqrt(expected * (1 - chances))).all(), counts


def test_large_groups_are_not_held_out():
    sides = [["a"] * 4 + ["b", "c"], list("uvwxyz")]
    assert sorted(split_rows(sides, {"val": 2})["val"]) == [4, 5]
    message = message_of(split_rows, sides, {"val": 3})
    assert "3 of 6" in message


def test_rows_that_all_hang_together_cannot_be_split():
    sides = [["a", "a", "b", "c"], ["x", "y", "y", "z"]]
    assert sorted(split_rows(sides, {"test": 1})["test"]) == [3]
    assert "2 of 4" in message_of(split_rows, sides, {"test": 2})
    assert "0.01 of 4" in message_of(split_rows, sides, {"val": 0.01})
    assert "1 of 1 " in message_of(split_rows, [["a"], ["x"]], {"val": 1})
    assert "5 of 2 " in message_of(split_rows, [["a", "b"], ["x", "y"]], {"val": 5})


@pytest.mark.parametrize("part", [-5, 0, 2.5, float("nan"), float("inf")])
def test_a_part_that_is_no_number_of_rows_is_refused(part, random):
    assert f"val is {part}" in message_of(split_rows, repeating(random), {"val": part})


def test_empty_sentences_hold_nothing_together():
    assert len(split_rows([["", "", "a"], ["x", "y", "z"]], {"test": 1, "val": 1})["val"]) == 1


@pytest.mark.parametrize("files", [("train.en", "train.de"), "train.tsv"])
def test_a_corpus_of_one_text(files, random, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sides = repeating(random)
    for name, side in zip(("train.en", "train.de"), sides, strict=True):
        (tmp_path / name).write_text("\n".join(side))
    (tmp_path / "train.tsv").write_text("\n".join(map("\t".join, zip(*sides, strict=True))))
    assert "train" in message_of(open_files, None, 10, files)
    corpus = open_files(train=files, val=0.05, test=10)
    assert corpus.splits == ("train", "val", "test")
    corpus.pairs("train", "en", "de")
    for path in tmp_path.iterdir():
        path.unlink()  # it is read once
    pairs = [list(zip(*corpus.pairs(split, "en", "de"), strict=True)) for split in corpus.splits]
    assert [len(some) for some in pairs] == [370, 20, 10]
    assert sorted(sum(pairs, [])) == sorted(zip(*sides, strict=True))
