"""Batches: every pair once, few shapes, least padding, the same everywhere."""

import itertools

import numpy as np
import pytest
from message_of import message_of
from unpadded import unpadded

from kzoo.data import Batches
from kzoo.data.batch_shapes import batch_shapes
from kzoo.text.vocabulary import END, START


def pairs(random, count=200):
    """Return sentences whose first word is their number."""
    source = [[10 + i, *random.integers(4, 9, random.integers(0, 20))] for i in range(count)]
    target = [[10 + i, *random.integers(4, 9, random.integers(0, 20))] for i in range(count)]
    return source, target


def contents(batches):
    """Return the rows of all batches, in order."""
    return [row for i in range(len(batches)) for row in unpadded(*batches[i])]


def test_every_pair_comes_once_with_its_symbols(random):
    source, target = pairs(random)
    rows = contents(Batches(source, target, tokens=128, num_shapes=4))
    expected = [((*s, END), (START, *t), (*t, END)) for s, t in zip(source, target, strict=True)]
    assert sorted(rows) == sorted(expected)


def test_every_pair_comes_with_its_image(random):
    images = random.integers(1, 256, (200, 2, 3)).astype("uint8")
    batches = Batches(*pairs(random), tokens=128, num_shapes=4, images=images)
    for i in range(len(batches)):
        inputs = batches[i][0]
        assert inputs["image"].dtype == images.dtype
        for words, image in zip(inputs["source"], inputs["image"], strict=True):
            np.testing.assert_array_equal(image, images[words[0] - 10] if words.any() else 0)


def test_shapes_are_few_and_within_the_budget(random):
    batches = Batches(*pairs(random), tokens=128, num_shapes=4)
    shapes = {batches[i][0]["source"].shape for i in range(len(batches))}
    assert shapes <= set(batches.shapes)
    assert len(batches.shapes) == 4
    assert all(rows * length <= 128 for rows, length in shapes)


def test_order_is_fixed_by_seed_and_epoch(random):
    data = pairs(random)
    first, again, other = (
        Batches(*data, 128, seed=1),
        Batches(*data, 128, seed=1),
        Batches(*data, 128, seed=2),
    )
    assert contents(first) == contents(again)
    assert contents(first) != contents(other)
    first.on_epoch_end()
    assert contents(first) != contents(again)
    again.start_epoch(1)
    assert contents(first) == contents(again)


def test_epochs_do_not_go_from_short_to_long(random):
    batches = Batches(*pairs(random), tokens=128, num_shapes=4)
    lengths = [batches[i][0]["source"].shape[1] for i in range(len(batches))]
    assert lengths[2:] != sorted(lengths[2:])


def test_first_two_batches_differ_on_both_axes(random):
    for seed in range(20):
        batches = Batches(*pairs(random), tokens=128, num_shapes=3, seed=seed)
        (a, b), (c, d) = (batches[i][0]["source"].shape for i in (0, 1))
        assert a != c
        assert b != d


def test_batch_shapes_have_the_least_padding(random):
    lengths = random.integers(1, 12, 60)
    distinct = np.unique(lengths)

    def words(ends):
        return sum(min(e for e in ends if e >= n) for n in lengths)

    for groups in (1, 2, 3):
        every = [(*ends, distinct[-1]) for ends in itertools.combinations(distinct[:-1], groups - 1)]
        chosen = [length for _, length in batch_shapes(lengths, 100, groups)]
        assert words(chosen) == min(words(ends) for ends in every)
        assert len(chosen) == groups
        counted = batch_shapes(distinct, 100, groups, counts=np.bincount(lengths)[distinct])
        assert [length for _, length in counted] == chosen


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        (([[4], [5]], [[4]]), "1 target"),
        (([[4], [5]], [[4], [5]], {"images": np.zeros((1, 2))}), "1 images"),
        (([[4], [4] * 5], [[4], [4]], {"shapes": [(4, 3), (2, 5)]}), "pair 2 "),
        (([[4], [4] * 5], [[4], [4]], {"max_length": 5}), "pair 2 "),
        (([[4]], ["Ein Hund."]), "'Ein Hund.'"),
        (([], []), "pairs"),
    ],
)
def test_bad_input_is_named(arguments, name):
    sides, settings = arguments[:2], arguments[2] if arguments[2:] else {}
    assert name in message_of(Batches, *sides, **settings)
