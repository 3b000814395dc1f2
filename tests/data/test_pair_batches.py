"""Batches of language pairs: all sentences, by turns or by weights, in shapes that the pairs share."""

from collections import Counter

import numpy as np
import pytest
from message_of import message_of
from unpadded import unpadded

from kzoo.data import PairBatches
from kzoo.data.language_pairs import language_pairs
from kzoo.text.vocabulary import END, START

LANGUAGES = ["en", "de", "fr"]
PAIRS = language_pairs(LANGUAGES)


def corpus(count=40):
    """Return aligned sentences: the first word is 10 times the line plus the language's number."""
    random = np.random.default_rng(1)
    return {
        language: [
            [100 + 10 * line + number, *random.integers(4, 9, random.integers(0, 12))]
            for line in range(count)
        ]
        for number, language in enumerate(LANGUAGES)
    }


def pair_of(inputs):
    """Return the one pair of a batch's inputs."""
    numbers = [set(inputs[f"{side}_language"].tolist()) for side in ("source", "target")]
    assert all(len(of_side) == 1 for of_side in numbers)
    return tuple(LANGUAGES[of_side.pop()] for of_side in numbers)


def epoch(batches):
    """Return for each batch of an epoch its pair, its shape and its sentences without padding."""
    each = [batches[i] for i in range(len(batches))]
    return [(pair_of(batch[0]), batch[0]["source"].shape, unpadded(*batch)) for batch in each]


def expected_rows(words, source, target):
    sides = zip(words[source], words[target], strict=True)
    return sorted(((*s, END), (START, *t), (*t, END)) for s, t in sides)


def test_an_epoch_holds_every_sentence_of_every_pair_once():
    words = corpus()
    found = epoch(PairBatches(words, PAIRS, LANGUAGES, tokens=60, num_shapes=3))
    for pair in PAIRS:
        rows = [row for of, _, rows in found if of == pair for row in rows]
        assert sorted(rows) == expected_rows(words, *pair)


@pytest.mark.parametrize("num_batches", [7, 25, 150])
def test_short_and_long_epochs_leave_no_sentence_behind(num_batches):
    """A pass ends before the next begins: after any epoch the sentences were seen n or n + 1 times."""
    words = corpus()
    batches = PairBatches(words, PAIRS, LANGUAGES, tokens=60, num_shapes=3, num_batches=num_batches)
    seen = {pair: Counter(dict.fromkeys(expected_rows(words, *pair), 0)) for pair in PAIRS}
    for _ in range(9):
        found = epoch(batches)
        assert len(found) == num_batches
        for pair, _, rows in found:
            seen[pair].update(rows)
        for counts in seen.values():
            assert max(counts.values()) - min(counts.values()) <= 1
        batches.on_epoch_end()
    assert all(len(counts) == 40 for counts in seen.values())


def test_pairs_of_equal_size_strictly_alternate():
    batches = PairBatches(corpus(), PAIRS, LANGUAGES, sentences=8, num_shapes=1)
    assert [pair for pair, _, _ in epoch(batches)] == PAIRS * 5


def test_unequal_pairs_are_spread_evenly():
    """Twelve batches of one pair and four of the other: in every quarter of the epoch three and one."""
    words = corpus(96)
    sides = {("en", "de"): [words["en"], words["de"]], ("fr", "en"): [words["fr"][:32], words["en"][:32]]}
    found = epoch(PairBatches(sides, list(sides), LANGUAGES, sentences=8, num_shapes=1))
    assert len(found) == 16
    for quarter in range(4):
        pairs = Counter(pair for pair, _, _ in found[4 * quarter : 4 * quarter + 4])
        assert pairs == {("en", "de"): 3, ("fr", "en"): 1}
    for pair, (source, target) in sides.items():
        rows = [row for of, _, rows in found if of == pair for row in rows]
        assert sorted(rows) == expected_rows({"s": source, "t": target}, "s", "t")


def test_weights_give_each_pair_its_share():
    weights = dict(zip(PAIRS, (5, 1, 1, 1, 1, 1), strict=True))
    batches = PairBatches(corpus(), PAIRS, LANGUAGES, weights, sentences=8, num_shapes=2, num_batches=40)
    counts = Counter(pair for pair, _, _ in epoch(batches))
    assert counts == {pair: 4 * weight for pair, weight in weights.items()}
    assert len(batches) == 40
    weights |= {("en", "fr"): 0, ("fr", "de"): -1}
    assert "en-fr, fr-de" in message_of(PairBatches, corpus(), PAIRS, LANGUAGES, weights)


def test_all_pairs_share_few_shapes():
    batches = PairBatches(corpus(), PAIRS, LANGUAGES, tokens=60, num_shapes=3)
    found = epoch(batches)
    shapes = {pair: {shape for of, shape, _ in found if of == pair} for pair in PAIRS}
    assert set().union(*shapes.values()) == set(batches.batches[0].shapes)
    assert len(batches.batches[0].shapes) == 3
    assert all(rows * length <= 60 for rows, length in batches.batches[0].shapes)
    assert all(len(of_pair) > 1 for of_pair in shapes.values())
    rows = {shape[0] for _, shape, _ in epoch(PairBatches(corpus(), PAIRS, LANGUAGES, sentences=8))}
    assert rows == {8}


def test_first_two_batches_differ():
    """On both axes, with shapes of different rows."""
    for seed in range(10):
        found = epoch(PairBatches(corpus(), PAIRS, LANGUAGES, tokens=60, num_shapes=3, seed=seed))
        (a, b), (c, d) = found[0][1], found[1][1]
        assert a != c
        assert b != d


def test_first_two_batches_of_short_epochs_differ_in_length():
    """On TensorFlow, Keras takes the length of the first two batches for that of all, if it is the same."""
    both = [("en", "de"), ("de", "en")]
    batches = PairBatches(corpus(), both, LANGUAGES[:2], sentences=8, num_shapes=3, num_batches=2)
    for number in range(10):
        batches.start_epoch(number)
        (_, (_, first), _), (_, (_, second), _) = epoch(batches)
        assert first != second


def test_order_is_fixed_by_seed_and_epoch():
    first, again, other = (
        PairBatches(corpus(), PAIRS, LANGUAGES, tokens=60, num_shapes=3, num_batches=20, seed=seed)
        for seed in (1, 1, 2)
    )
    assert epoch(first) == epoch(again)
    assert epoch(first) != epoch(other)
    first.on_epoch_end()
    first.on_epoch_end()
    assert epoch(first) != epoch(again)
    again.start_epoch(2)
    assert epoch(first) == epoch(again)


def test_num_words_is_the_target_words_of_an_epoch():
    words = corpus()
    batches = PairBatches(words, PAIRS, LANGUAGES, tokens=60)
    targets = [sentence for _, target in PAIRS for sentence in words[target]]
    assert batches.num_tokens == sum(len(sentence) + 1 for sentence in targets)
    assert sum(len(labels) for _, _, rows in epoch(batches) for _, _, labels in rows) == batches.num_tokens


@pytest.mark.parametrize("passes", [0.5, 2])
def test_num_words_is_the_average_of_epochs_that_end_within_a_pass(passes):
    words = corpus(48)
    whole = PairBatches(words, PAIRS, LANGUAGES, sentences=8, num_shapes=1)
    num_batches = int(passes * len(whole))
    batches = PairBatches(words, PAIRS, LANGUAGES, sentences=8, num_shapes=1, num_batches=num_batches)
    assert batches.num_tokens == passes * whole.num_tokens
    seen = []
    for _ in range(2):
        seen.append(sum(len(labels) for _, _, rows in epoch(batches) for _, _, labels in rows))
        batches.on_epoch_end()
    assert np.mean(seen) == batches.num_tokens


def test_pairs_have_orders_of_their_own():
    """Or the same sentences, in different languages, would follow each other."""
    found, orders = epoch(PairBatches(corpus(), PAIRS, LANGUAGES, sentences=8, num_shapes=1)), {}
    for pair, _, rows in found:
        orders.setdefault(pair, []).extend((source[0] - 100) // 10 for source, _, _ in rows)
    assert len(set(map(tuple, orders.values()))) == len(PAIRS)


WORDS = corpus()
SIDES = {pair: [WORDS[code] for code in pair] for pair in PAIRS}


@pytest.mark.parametrize(
    ("texts", "settings", "name"),
    [
        ({**WORDS, "de": WORDS["de"][:39]}, {}, "en-de: 40 source"),
        ({**SIDES, ("de", "fr"): [WORDS["de"], []]}, {}, "de-fr: 40 source"),
        ({**SIDES, ("de", "fr"): [[], []]}, {}, "de-fr"),
        ({**WORDS, "fr": ["Un chien."] * 40}, {}, "ids"),
        (WORDS, {"max_length": 5}, "limit"),
        (WORDS, {"weights": dict.fromkeys(PAIRS, 1) | {("en", "de"): "2"}}, "en-de"),
    ],
)
def test_bad_input_is_named(texts, settings, name):
    assert name in message_of(PairBatches, texts, PAIRS, LANGUAGES, **settings)


@pytest.mark.parametrize(
    ("languages", "pair"), [(["en", "de"], ("en", "fr")), ([*LANGUAGES, "cs"], ("en", "cs"))]
)
def test_a_language_without_a_number_or_text_is_named(languages, pair):
    assert f"{'-'.join(pair)}: {pair[1]!r}" in message_of(PairBatches, WORDS, [pair], languages)


def test_too_long_a_sentence_is_named_by_its_number_in_its_pair():
    words = {("a", "b"): [[[4]] * 5] * 2, ("b", "a"): [[[4]] * 7 + [[4] * 9]] * 2}
    message = message_of(PairBatches, words, list(words), ["a", "b"], tokens=30, max_length=8)
    assert "pair 8 " in message
