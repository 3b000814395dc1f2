"""Batches with other subwords in each epoch: the same text, shapes and empty rows, whatever they wrap."""

from random import Random

import numpy as np
import pytest
from unpadded import unpadded

from kzoo.data import Batches, PairBatches, open_corpus
from kzoo.data.wrapped_batches import ResegmentedBatches, ResumedBatches
from kzoo.text import SubwordTokenizer, train_subwords
from kzoo.text.bpe_dropout import BPEDropout

LANGUAGES = ["en", "de"]
SIDES = dict(zip(LANGUAGES, open_corpus("scenes").pairs("train", *LANGUAGES), strict=True))
TOKENIZERS = {code: SubwordTokenizer(train_subwords(text, 200)) for code, text in SIDES.items()}
TOKENS = {code: [*tokenizer(SIDES[code][:60]), []] for code, tokenizer in TOKENIZERS.items()}
DROPOUTS = [BPEDropout(tokenizer.proto, 0.3, 1) for tokenizer in TOKENIZERS.values()]
IMAGES = np.arange(61 * 6, dtype="float32").reshape(61, 2, 3)


def wrapped(kind):
    if kind == "several directions":
        pairs = [("en", "de"), ("de", "en"), ("de", "de")]
        batches = PairBatches(TOKENS, pairs, LANGUAGES, tokens=100, num_shapes=3)
        return batches, ResegmentedBatches(batches, DROPOUTS, DROPOUTS, 1)
    batches = Batches(*TOKENS.values(), tokens=100, num_shapes=3, images=IMAGES if kind == "images" else None)
    return batches, ResegmentedBatches(batches, *([dropout] for dropout in DROPOUTS), 1)


def texts(batch):
    """Return a batch's sentences as text: sources, targets and labels, which must agree."""
    inputs = batch[0]
    codes = [LANGUAGES[inputs.get(f"{side}_language", [n])[0]] for n, side in enumerate(("source", "target"))]
    rows = unpadded(*batch)
    assert all(target[1:] == labels[:-1] for _, target, labels in rows)
    sides = [row[0][:-1] for row in rows], [row[2][:-1] for row in rows]
    return [TOKENIZERS[code].detokenize(side) for code, side in zip(codes, sides, strict=True)]


@pytest.mark.parametrize("kind", ["text", "images", "several directions"])
def test_the_same_text_in_the_same_shapes(kind):
    usual, other = wrapped(kind)
    assert len(other) == len(usual)
    assert other.num_tokens == usual.num_tokens
    changed = 0
    for number in range(len(usual)):
        (inputs, *rest), (drawn, *others) = usual[number], other[number]
        assert texts((inputs, *rest)) == texts((drawn, *others))
        assert inputs.keys() == drawn.keys()
        for name in inputs.keys() - {"source", "target"}:
            np.testing.assert_array_equal(drawn[name], inputs[name])
        for before, after in zip(
            (inputs["source"], inputs["target"], *rest),
            (drawn["source"], drawn["target"], *others),
            strict=True,
        ):
            assert before.shape == after.shape
            assert before.dtype == after.dtype
        changed += (drawn["source"] != inputs["source"]).any()
    assert changed > len(usual) // 2


def epoch_of(batches, epoch):
    batches.start_epoch(epoch)
    return [batches[number] for number in range(len(batches))]


def equal(some, others):
    return all(np.array_equal(a[0]["source"], b[0]["source"]) for a, b in zip(some, others, strict=True))


def test_each_epoch_draws_anew_and_a_resumed_one_the_same():
    usual, other = wrapped("text")
    usual.shuffle = False  # the same rows in each epoch
    epochs = [epoch_of(other, epoch) for epoch in range(3)]
    assert not equal(epochs[1], epochs[2])
    _, again = wrapped("text")
    again.batches.shuffle = False
    resumed = ResumedBatches(again)
    resumed.start_epoch(2)
    resumed.first = 3
    resumed.on_epoch_begin()
    assert equal([resumed[number] for number in range(len(resumed))], epochs[2][3:])


def test_a_side_without_subwords_stays_as_it_is():
    usual, _ = wrapped("text")
    other = ResegmentedBatches(usual, [None], [DROPOUTS[1]], 1)
    sources, targets = (
        [any((usual[i][0][side] != other[i][0][side]).any() for i in range(len(usual)))]
        for side in ("source", "target")
    )
    assert not any(sources)
    assert any(targets)


def test_room_for_them_keeps_most_of_what_is_drawn():
    rows = list(TOKENS.values())
    growth = max(one.growth(some) for one, some in zip(DROPOUTS, rows, strict=True))
    random, usual = Random(1), sum(map(len, rows[1]))
    drawn = sum(len(DROPOUTS[1](row, 1000, random)) for row in rows[1])
    kept = []
    for room in (1.0, growth):
        batches = Batches(*rows, tokens=200, num_shapes=3, growth=room)
        other = ResegmentedBatches(batches, *([dropout] for dropout in DROPOUTS), 1)
        found = sum(np.count_nonzero(other[number][1]) for number in range(len(other)))
        kept.append((found - len(rows[1]) - usual) / (drawn - usual))
    assert kept[1] > 0.75 > kept[0]
