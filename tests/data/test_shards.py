"""Shards: the same pairs as in memory, whatever writes them, and damage that is named."""

import contextlib
import dataclasses
import functools
import itertools
import json
import os
import resource
import shutil
import subprocess
import sys

import numpy as np
import pytest
from message_of import message_of
from unpadded import unpadded

from kzoo.data import Batches, ShardedBatches, Shards
from kzoo.data.shards import BLOCK, FORMAT, Encoding, Index, write_shards
from kzoo.errors import UserError
from kzoo.files import atomic_folder, sha256
from kzoo.text.pieces import character_tokens
from kzoo.text.vocabulary import UnknownCharacters
from kzoo.training.preparation import silent

LETTERS = {letter: number for number, letter in enumerate("abcdefghijklmnop", 4)}
numbered = functools.partial(character_tokens, LETTERS)
COUNT = 230


def words(texts):
    return [[LETTERS[letter] for letter in text] for text in texts]


@pytest.fixture(scope="module")
def text():
    random = np.random.default_rng(5)
    return [
        tuple("".join(random.choice(list(LETTERS), random.integers(0, 20))) for _ in range(2))
        for _ in range(COUNT)
    ]


def write(folder, text, shards=4, processes=1, seed=1, dtype="<u2"):
    folder.mkdir()
    encoding = Encoding(numbered, numbered, dtype, shards, seed)
    rows, unknown = write_shards(folder, iter(text), encoding, processes, silent, len(text))
    settings, unknown = {"source": "en", "target": "de"}, [dataclasses.astuple(side) for side in unknown]
    Index(FORMAT, settings, {}, len(text), {}, dtype, rows, unknown).write(folder)
    return Shards(folder)


@pytest.fixture(scope="module")
def shards(text, tmp_path_factory):
    return write(tmp_path_factory.mktemp("shards") / "four", text)


def rows(batches):
    """Return the rows of all batches, in order, and check each batch's shape."""
    found = []
    for number in range(len(batches)):
        batch = batches[number]
        assert batch[0]["source"].shape in batches.shapes
        found += unpadded(*batch)
    return found


def test_the_same_pairs_and_shapes_as_in_memory(shards, text):
    ours = ShardedBatches(shards, 128, 4)
    theirs = Batches(*map(words, zip(*text, strict=True)), 128, 4)
    for epoch in (0, 1):
        ours.start_epoch(epoch)
        theirs.start_epoch(epoch)
        assert sorted(rows(ours)) == sorted(rows(theirs))
    assert ours.shapes == theirs.shapes
    assert ours.num_tokens == theirs.num_tokens


@pytest.mark.parametrize("processes", [1, 2])
def test_what_ends_a_line_is_not_written_and_what_the_vocabulary_lacks_is_counted(processes, tmp_path):
    rows = BLOCK
    text = [("ab\r\n", "a€"), ("c\u2028", "é€b"), ("a", "b\n")] * rows
    shards = write(tmp_path / "shards", text, 1, processes)
    assert shards.unknown == {
        "en": UnknownCharacters(3 * rows),
        "de": UnknownCharacters(3 * rows, 2 * rows, "€é"),
    }
    sources, targets = shards.open(0).pairs(np.arange(3 * rows))
    assert sorted(sources) == sorted(words(["ab", "c", "a"] * rows))
    assert sorted(map(len, targets)) == sorted([1, 2, 3] * rows)


def test_words_of_four_bytes(text, tmp_path):
    shards = write(tmp_path / "wide", text, dtype="<u4")
    theirs = Batches(*map(words, zip(*text, strict=True)), 128)
    assert sorted(rows(ShardedBatches(shards, 128))) == sorted(rows(theirs))


def test_truncated_as_in_memory(shards, text):
    sides = [[words[:9] for words in side] for side in map(words, zip(*text, strict=True))]
    ours, theirs = ShardedBatches(shards, 128, 4, max_length=10, too_long="truncate"), Batches(*sides, 128, 4)
    assert sorted(rows(ours)) == sorted(rows(theirs))
    assert (ours.shapes, ours.num_tokens) == (theirs.shapes, theirs.num_tokens)


def test_dropped_as_in_memory(shards, text):
    every = list(zip(*map(words, zip(*text, strict=True)), strict=True))
    kept = [pair for pair in every if max(map(len, pair)) < 10]
    ours = ShardedBatches(shards, 128, 4, max_length=10, too_long="drop")
    theirs = Batches(*map(list, zip(*kept, strict=True)), 128, 4)
    assert sorted(rows(ours)) == sorted(rows(theirs))
    assert (ours.shapes, ours.num_tokens, ours.dropped) == (
        theirs.shapes,
        theirs.num_tokens,
        len(every) - len(kept),
    )
    assert 0 < ours.dropped < len(every)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_order_is_fixed_by_seed_and_epoch(count, text, tmp_path):
    shards = write(tmp_path / "shards", text, count)
    batches, orders = ShardedBatches(shards, 128, seed=1), []
    for epoch in range(4):
        other, again = (ShardedBatches(shards, 128, seed=seed) for seed in (2, 1))
        for each in (other, again):
            each.start_epoch(epoch)
        orders += [rows(batches), rows(other)]
        assert orders[-2] == rows(again)
        batches.on_epoch_end()
    for one, two in itertools.combinations(orders, 2):
        assert one != two
        assert sorted(one) == sorted(two)


def test_shards_come_in_another_order_by_epoch_and_seed(shards):
    orders = []
    for seed in (1, 2):
        batches = ShardedBatches(shards, 128, seed=seed)
        for epoch in range(4):
            orders.append(tuple(dict.fromkeys(batches.plan(epoch)[:, 0])))
    assert len(set(orders[:4])) > 1
    assert orders[:4] != orders[4:]


def test_a_shard_does_not_go_from_short_to_long(shards):
    batches = ShardedBatches(shards, 128, 3, seed=1)
    shard_of = batches.plan(0)[:, 0]
    count = np.count_nonzero(shard_of == shard_of[0])
    lengths = [batches[number][0]["source"].shape[1] for number in range(count)]
    assert lengths[2:] != sorted(lengths[2:])


def test_batches_are_read_in_any_order(shards):
    batches = ShardedBatches(shards, 128)
    forward = [batches[number][1] for number in range(len(batches))]
    for number in reversed(range(len(batches))):
        np.testing.assert_array_equal(batches[number][1], forward[number])


def test_two_shards_are_open_at_most(shards):
    batches = ShardedBatches(shards, 128)
    for number in range(len(batches)):
        batches[number]
        assert batches._opened.cache_info().currsize <= 2
    assert batches._opened.cache_info().misses == len(shards)


def test_first_two_batches_differ_on_both_axes(tmp_path):
    """As `Batches`; here only one of the shards has sentences of two lengths."""
    shards = write(tmp_path / "shards", [("a", "b")] * 59 + [("a" * 9, "b")], shards=3)
    for seed in range(9):
        batches = ShardedBatches(shards, 20, 2, seed)
        (a, b), (c, d) = (batches[number][0]["source"].shape for number in (0, 1))
        assert a != c
        assert b != d


def test_a_shard_is_a_random_sample_of_equal_size(shards, text):
    sizes = [len(shards.lengths(number)) for number in range(4)]
    assert sizes == [58, 58, 57, 57]
    known = list(zip(*map(words, zip(*text, strict=True)), strict=True))
    for number, size in enumerate(sizes):
        pairs = zip(*shards.open(number).pairs(np.arange(size)), strict=True)
        lines = np.array([known.index((list(source), list(target))) for source, target in pairs])
        for sample in (lines % 4, lines * 4 // COUNT):  # from anywhere, and at no fixed distance
            assert np.bincount(sample, minlength=4).min() > 5


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_parallel_equals_serial(shards, text, tmp_path):
    parallel = write(tmp_path / "parallel", text, processes=2)
    assert contents(parallel.folder) == contents(shards.folder)


def test_processes_load_no_backend():
    program = "import sys, kzoo.data.shards; assert not {'keras', 'tensorflow', 'jax'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", program], check=True)


def test_many_blocks_hold_every_pair_once(text, tmp_path):
    text = text * (BLOCK // 100)
    batches = ShardedBatches(write(tmp_path / "blocks", text, shards=3), 128)
    assert sorted(row[0][:-1] for row in rows(batches)) == sorted(map(tuple, words(t[0] for t in text)))
    assert [len(batches.shards.lengths(number)) for number in range(3)] == [7667, 7667, 7666]


def test_too_long_a_sentence_is_named(shards):
    assert "of-00004.array_record" in message_of(ShardedBatches, shards, 128, max_length=10)


@pytest.fixture
def copy(shards, tmp_path):
    return shutil.copytree(shards.folder, tmp_path / "copy")


def flip(path, place):
    data = bytearray(path.read_bytes())
    data[place] ^= 1
    path.write_bytes(data)


def test_a_folder_in_the_home_directory(copy, monkeypatch):
    monkeypatch.setenv("HOME", str(copy.parent))
    assert Shards(f"~/{copy.name}").pairs == COUNT


def test_a_folder_without_shards_is_named(tmp_path):
    assert "kzoo prepare" in message_of(Shards, tmp_path / "none")


@pytest.mark.parametrize(
    "index",
    [
        "{",
        "[]",
        f'{{"format": {FORMAT}}}',
        "null",
        f'{{"format": {FORMAT}, "shards": [{{}}]}}',
        '{"settings": {"en": "\xff"}}',
        '{"settings": {"en": ' + 10_000 * "[",
    ],
)
def test_a_broken_index_is_named(index, copy):
    (copy / "index.json").write_text(index, "latin-1")
    assert "index.json" in message_of(Shards, copy)


def test_another_format_is_named(copy):
    index = json.loads((copy / "index.json").read_text())
    (copy / "index.json").write_text(json.dumps({**index, "format": FORMAT + 1}))
    assert f"format {FORMAT + 1}" in message_of(Shards, copy)


def test_a_truncated_or_missing_shard_is_named(copy):
    shard = copy / "00001-of-00004.array_record"
    shard.write_bytes(shard.read_bytes()[:-5])
    assert shard.name in message_of(Shards, copy)
    shard.unlink()
    assert shard.name in message_of(Shards, copy)


def test_flipped_bits_are_named(copy):
    flip(copy / "00002-of-00004.array_record", 200)
    assert "00002-of-00004.array_record" in message_of(lambda: rows(ShardedBatches(Shards(copy), 128)))
    flip(copy / "00003-of-00004.lengths.npy", -1)
    assert "00003-of-00004.lengths.npy" in message_of(ShardedBatches, Shards(copy), 128)


def test_a_missing_file_is_named_and_not_the_runs(copy, tmp_path):
    shards = Shards(copy)
    shards._index.vocabularies["subwords.joint.model"] = ""
    (copy / "00003-of-00004.lengths.npy").unlink()
    assert "00003-of-00004.lengths.npy" in message_of(ShardedBatches, shards, 128)
    message = message_of(shards.copy_vocabularies, tmp_path / "run")
    assert message.startswith(f"{copy / 'subwords.joint.model'}: damaged (No such file")


def test_a_vocabulary_elsewhere_is_not_copied(copy, tmp_path):
    (copy.parent / "harm.py").write_text("harm")
    shards = Shards(copy)
    shards._index.vocabularies["../harm.py"] = sha256(copy.parent / "harm.py")
    assert "'../harm.py'" in message_of(shards.copy_vocabularies, tmp_path / "a" / "run")
    assert not (tmp_path / "a" / "harm.py").exists()


def test_shards_for_another_recipe_are_named(shards):
    shards.require(source="en", target="de")
    assert "'de'" in message_of(shards.require, source="en", target="fr")


def test_a_full_disk_is_one_line(text, tmp_path):
    """A device that is always full stands where the first shard is to be written."""
    full = pytest.raises(UserError, match="space")
    with full, atomic_folder(tmp_path / "shards") as folder:
        (folder / "00000-of-00001.array_record").symlink_to("/dev/full")
        encoding = Encoding(numbered, numbered, "<u2", 1, 1)
        write_shards(folder, text * 50, encoding, 1, silent, len(text) * 50)
    assert not list(tmp_path.iterdir())


def test_a_disk_that_fills_up_in_the_lengths_is_one_line(text, tmp_path):
    """Once shards are written, no file grows over 1,000 bytes. ArrayRecord's goes to a device."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)

    @contextlib.contextmanager
    def filled(what, total):
        if what == "writing shards":
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        try:
            yield lambda count: None
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)

    with pytest.raises(UserError, match="File too large"), atomic_folder(tmp_path / "shards") as folder:
        (folder / "00000-of-00001.array_record").symlink_to("/dev/null")
        encoding = Encoding(numbered, numbered, "<u2", 1, 1)
        write_shards(folder, text * 50, encoding, 1, filled, len(text) * 50)
    assert not list(tmp_path.iterdir())


class Deadly:
    """Ends the process that it is sent to."""

    def __reduce__(self):
        return os._exit, (1,)


def test_a_process_that_dies_is_one_line(text, tmp_path):
    encoding = Encoding(Deadly(), numbered, "<u2", 1, 1)
    message = message_of(write_shards, tmp_path, text, encoding, 2, silent, len(text))
    assert "2 processes" in message
