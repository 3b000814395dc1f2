"""Subword regularization: what is sampled is the same text, each epoch anew, and again after a resume."""

from collections import Counter

import numpy as np
import pytest
import sentencepiece

from kzoo.data import Batches, PairBatches, ShardedBatches, open_corpus
from kzoo.data.batches import BatchesByEpoch
from kzoo.data.wrapped_batches import ResumedBatches, SampledBatches, WorkerRows
from kzoo.text import train_subwords
from kzoo.text.sampling import SubwordSampler
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

SIDES = [side[:300] for side in open_corpus("scenes").pairs("val", "en", "de")]
PROTO = train_subwords([*SIDES[0], *SIDES[1]], 300)
PROCESSOR = sentencepiece.SentencePieceProcessor(model_proto=PROTO)
USUAL = [PROCESSOR.encode(side) for side in SIDES]
SAMPLER = SubwordSampler(PROTO, 0.1)


def sampled(batches: BatchesByEpoch, seed=1, samplers=(SAMPLER,)):
    return SampledBatches(batches, samplers, samplers, seed)


def bilingual(room=1.4, **options):
    return sampled(Batches(*USUAL, tokens=300, num_shapes=3, seed=1, room=room), **options)


def rows_of(batches):
    """Return the source and target rows of all batches of an epoch, without special tokens."""
    rows = []
    for index in range(len(batches)):
        inputs, labels, weights = batches[index]
        np.testing.assert_array_equal(weights, labels != PAD)
        for source, target, label in zip(inputs["source"], inputs["target"], labels, strict=True):
            source, target, label = (row[row != PAD].tolist() for row in (source, target, label))
            if source:
                assert (source[-1], target[0], label[-1]) == (END, START, END) and target[1:] == label[:-1]
                rows.append((source[:-1], target[1:]))
    return rows


def test_each_epoch_has_every_pair_in_other_subwords():
    batches, epochs = bilingual(), []
    shapes = [batches[index][1].shape for index in range(len(batches))]
    for epoch in range(3):
        batches.start_epoch(epoch)
        rows = rows_of(batches)
        texts = Counter((PROCESSOR.decode(source), PROCESSOR.decode(target)) for source, target in rows)
        assert texts == Counter(zip(*SIDES, strict=True))
        assert Counter(batches[n][1].shape for n in range(len(batches))) == Counter(shapes)
        changed = [side != PROCESSOR.encode(PROCESSOR.decode(side)) for row in rows for side in row]
        assert np.mean(changed) > 0.5
        epochs.append(rows)
    assert sorted(epochs[0]) != sorted(epochs[1]) != sorted(epochs[2])


def test_a_resumed_epoch_has_the_batches_of_one_that_was_not_stopped():
    whole = bilingual()
    for _ in range(2):
        rows_of(whole)
        whole.on_epoch_end()
    resumed = ResumedBatches(bilingual())
    resumed.start_epoch(2)
    resumed.first = 3
    resumed.on_epoch_begin()
    for index in range(len(resumed)):
        (inputs, labels, _), (expected, expected_labels, _) = resumed[index], whole[index + 3]
        np.testing.assert_array_equal(inputs["source"], expected["source"])
        np.testing.assert_array_equal(labels, expected_labels)
    assert rows_of(bilingual(seed=2)) != rows_of(bilingual())


def test_workers_have_rows_of_the_same_sample():
    whole, parts = bilingual(), [WorkerRows(bilingual(), 2, 2, worker) for worker in range(2)]
    together = np.concatenate([part[0][0]["source"] for part in parts])
    np.testing.assert_array_equal(together[: len(whole[0][1])], whole[0][0]["source"])


def test_samples_that_do_not_fit_stay_as_they_were():
    shape = [(4, max(map(len, USUAL[0] + USUAL[1])) + 1)]
    tight = sampled(Batches(*USUAL, shapes=shape))
    rows = rows_of(tight)
    assert len(rows) == len(SIDES[0]) and max(len(side) for row in rows for side in row) < shape[0][1]
    longest = max(USUAL[0], key=len)
    one = sampled(Batches([longest], [longest], tokens=99), samplers=[SubwordSampler(PROTO, 0.9)])
    assert rows_of(one) == [(longest, longest)]
    with_room = sampled(Batches([longest], [longest], tokens=99, room=9.0), samplers=one.samplers["source"])
    assert rows_of(with_room) != [(longest, longest)]


def test_a_text_that_is_not_sampled_and_other_inputs_stay():
    images = np.arange(300, dtype="float32")[:, None]
    plain = Batches(*USUAL, tokens=300, seed=1, room=1.4, images=images)
    some = SampledBatches(plain, [None], [SAMPLER], 1)
    for index in range(3):
        (inputs, labels, _), (before, usual, _) = some[index], plain[index]
        np.testing.assert_array_equal(inputs["source"], before["source"])
        np.testing.assert_array_equal(inputs["image"], before["image"])
        assert (labels != usual).any()


def test_each_direction_has_the_subwords_of_its_languages():
    pairs = PairBatches(
        {"en": USUAL[0], "de": USUAL[1]}, [("de", "en"), ("en", "de")], ["en", "de"], tokens=300, room=1.4
    )
    batches = SampledBatches(pairs, [SAMPLER, None], [SAMPLER, None], 1)
    for index in range(len(batches)):
        (inputs, labels, _), (before, usual, _) = batches[index], pairs[index]
        np.testing.assert_array_equal(inputs["source_language"], before["source_language"])
        english = before["source_language"][0] == 0
        assert (inputs["source"] != before["source"]).any() == english
        assert (labels != usual).any() != english


def test_sentences_with_unknown_tokens_stay():
    rows = [[4, UNKNOWN, 5], USUAL[0][0]]
    drawn = SubwordSampler(PROTO, 0.9)(rows, (1,))
    assert drawn[0] == rows[0] and drawn[1] != rows[1]
    assert PROCESSOR.decode(drawn[1]) == SIDES[0][0]


def test_the_seed_fixes_a_sample():
    first = SAMPLER(USUAL[0], (1, 2))
    SAMPLER(USUAL[1], (5,))
    assert SAMPLER(USUAL[0], (1, 2)) == first != SAMPLER(USUAL[0], (1, 3))
    growth = SAMPLER.growth(USUAL[0])
    drawn = SAMPLER(USUAL[0], (9,))
    assert growth == pytest.approx(sum(map(len, drawn)) / sum(map(len, USUAL[0])), rel=0.05) and growth > 1.1


class FewShards:
    """Two shards in memory."""

    rows = [range(150), range(150, 300)]

    def __len__(self):
        return 2

    def path(self, number):
        return f"shard {number}"

    def lengths(self, number):
        return np.array([[len(side[row]) + 1 for side in USUAL] for row in self.rows[number]])

    def open(self, number):
        return OneShard(self.rows[number])


class OneShard:
    def __init__(self, rows):
        self.rows = rows

    def pairs(self, places):
        return tuple([side[self.rows[place]] for place in places] for side in USUAL)


def test_shards_are_sampled_too():
    batches = sampled(ShardedBatches(FewShards(), tokens=300, num_shapes=3, seed=1, room=1.4))
    texts = Counter(tuple(map(PROCESSOR.decode, row)) for row in rows_of(batches))
    assert texts == Counter(zip(*SIDES, strict=True))
    dropped = ShardedBatches(FewShards(), tokens=300, max_length=20, too_long="drop", room=1.4)
    assert dropped.dropped > 0 and len(rows_of(dropped)) == 300 - dropped.dropped
