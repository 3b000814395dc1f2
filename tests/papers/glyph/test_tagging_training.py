"""Taggers on a translator's vectors: what they begin with, what training moves, how batches are made."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from message_of import message_of

from kzoo.presets import glyph_zh_en_tiny, lookup_zh_en_tiny
from kzoo.text import CharacterTokenizer
from training.glyph.tagging import TaggedBatches, tagger_from, train_tagger

SMALL = {
    "target_vocabulary_size": 20,
    "embedding_dim": 8,
    "bidirectional": (8,),
    "unidirectional": (),
    "decoder_units": (8,),
}
SENTENCES = [
    [("学生", "NOUN"), ("来", "VERB")],
    [("我", "PRON"), ("看", "VERB"), ("书", "NOUN")],
    [("人", "NOUN")],
] * 4
TRANSLATED = "学生我看书"  # 来 and 人 are the treebank's alone


def translator(kind):
    pytest.importorskip("noto_cjk_sans_otc", reason="the glyphs' font is not installed")
    keras.utils.set_random_seed(1)
    tokenizer = CharacterTokenizer(list(TRANSLATED))
    if kind == "lookup":
        return lookup_zh_en_tiny(tokenizer, **SMALL)
    return glyph_zh_en_tiny(tokenizer, architecture="fc_1", **SMALL)


@pytest.mark.parametrize("kind", ["lookup", "glyph"])
def test_begins_with_the_translators_vectors(kind):
    model = translator(kind)
    tagger = tagger_from(model, SENTENCES)
    theirs = model.backbone.source_embedding(np.array(model.source_tokenizer([TRANSLATED])))
    ours = tagger.embedding(np.array(tagger.tokenizer([TRANSLATED])))
    np.testing.assert_allclose(
        keras.ops.convert_to_numpy(ours), keras.ops.convert_to_numpy(theirs), atol=1e-6
    )
    assert tagger.tokenizer.token_to_id("来") >= model.source_tokenizer.vocabulary_size()
    assert tagger.tag_names == ["B-NOUN", "B-PRON", "B-VERB", "I-NOUN"]


def test_another_font_s_glyphs_are_not_mixed():
    model = translator("glyph")
    glyphs = model.backbone.source_embedding.glyphs
    glyphs.assign(np.roll(keras.ops.convert_to_numpy(glyphs), 3, axis=2))
    assert "人" in message_of(tagger_from, model, SENTENCES)
    assert tagger_from(model, [[("学生", "NOUN")]]).tokenizer.vocabulary_size() == glyphs.shape[0]


@pytest.mark.parametrize(("kind", "adapted"), [("lookup", True), ("glyph", False)])
def test_only_an_adapted_embedding_moves(kind, adapted):
    tagger = tagger_from(translator(kind), SENTENCES, adapted)
    ids = np.array(tagger.tokenizer([TRANSLATED]))
    before = keras.ops.convert_to_numpy(tagger.embedding(ids))
    accuracy = train_tagger(tagger, SENTENCES, SENTENCES, epochs=2, batch_size=4, verbose=0)
    after = keras.ops.convert_to_numpy(tagger.embedding(ids))
    assert len(accuracy) == 2
    assert np.allclose(before, after) is not adapted


def test_a_seed_fixes_the_whole_training():
    weights = translator("lookup").get_weights()

    def accuracy_and_weights(drawn_before: int, seed: int):
        model = translator("lookup")
        keras.utils.set_random_seed(drawn_before)
        model = lookup_zh_en_tiny(model.source_tokenizer, **SMALL)
        model.set_weights(weights)
        tagger = tagger_from(model, SENTENCES, seed=seed)
        accuracy = train_tagger(tagger, SENTENCES, SENTENCES, epochs=2, batch_size=4, seed=seed, verbose=0)
        return accuracy, np.concatenate([weights.ravel() for weights in tagger.get_weights()])

    first, again, other = (accuracy_and_weights(*seeds) for seeds in ((3, 1), (4, 1), (3, 2)))
    assert first[0] == again[0]
    np.testing.assert_array_equal(first[1], again[1])
    assert not np.allclose(first[1], other[1])


def test_sentences_of_every_length_train():
    """The shortest come first in validation: of one length in the first two batches, of others later."""
    long = [[("书", "NOUN")] * n for n in (2, 2, 3, 40, 70)]
    tagger = tagger_from(translator("lookup"), SENTENCES)
    accuracy = train_tagger(tagger, SENTENCES, long, epochs=1, batch_size=1, verbose=0)
    assert accuracy[0] == pytest.approx(np.mean(tagged_rightly(tagger, long)), abs=1e-6)
    train_tagger(tagger, long, SENTENCES, epochs=1, batch_size=1, verbose=0)


class Fixed:
    """A tagger whose weights are the number of its epoch, and whose accuracies are fixed."""

    tokenizer = CharacterTokenizer(list(TRANSLATED))

    def __init__(self, accuracies):
        self.accuracies, self.weights, self.stop_training = accuracies, 0, False

    def arrays(self, sentences):
        pass

    def compile(self, optimizer):
        self.optimizer = optimizer

    def get_weights(self):
        return self.weights

    def set_weights(self, weights):
        self.weights = weights

    def fit(self, batches, epochs, callbacks, **options):
        called = keras.callbacks.CallbackList(callbacks, model=self)
        called.on_train_begin()
        for epoch, accuracy in enumerate(self.accuracies[:epochs]):
            self.weights = epoch + 1
            called.on_epoch_end(epoch, {"val_accuracy": accuracy})
            if self.stop_training:
                break
        called.on_train_end()
        return SimpleNamespace(history={"val_accuracy": self.accuracies[: epoch + 1]})


@pytest.mark.parametrize(("accuracies", "best"), [((3, 5, 4, 5, 2), 2), ((6, 5, 4, 3, 2), 1), ((1, 2, 3), 3)])
def test_ends_with_the_weights_of_its_best_epoch(accuracies, best):
    tagger = Fixed([accuracy / 10 for accuracy in accuracies])
    epochs = len(accuracies)
    assert train_tagger(tagger, SENTENCES, SENTENCES, epochs, batch_size=6) == tagger.accuracies
    assert tagger.weights == best


def test_the_optimizer_is_pytorch_s_adagrad(random):
    """torch.optim.Adagrad in NumPy: the sum of squares from 0, ε = 1e-10 outside the root."""
    tagger = Fixed((0.1,))
    train_tagger(tagger, SENTENCES, SENTENCES, 1, batch_size=6)
    gradients = np.concatenate([[[0.01, 1e-4, 1e-5, 0.0, -3.0]], random.normal(size=(5, 5))])
    weight = keras.Variable(np.ones(5, "float32"))
    tagger.optimizer.build([weight])
    expected, total = np.ones(5), np.zeros(5)
    for step, gradient in enumerate(gradients):
        tagger.optimizer.apply([keras.ops.convert_to_tensor(gradient, "float32")])
        total += gradient**2
        expected -= 0.1 * gradient / (np.sqrt(total) + 1e-10)
        found = keras.ops.convert_to_numpy(weight)
        np.testing.assert_allclose(found, expected, rtol=2e-5, atol=1e-6)
        if step == 0:
            np.testing.assert_allclose(found, [0.9, 0.9, 0.9, 1.0, 1.1], rtol=1e-5)


def tagged_rightly(tagger, sentences):
    """Return whether each character has its tag."""
    ids, tags = tagger.arrays(sentences)
    found = keras.ops.convert_to_numpy(tagger(ids)["tags"])
    return (found == tags)[ids > 0]


def test_batches_hold_every_sentence_once():
    tagger = tagger_from(translator("lookup"), SENTENCES)
    batches = TaggedBatches(tagger, SENTENCES, batch_size=5, seed=1)
    orders = []
    for _ in range(2):
        rows = [row for i in range(len(batches)) for row in batches[i][0]]
        assert {len(batches[i][0]) for i in range(len(batches))} == {5}
        texts = [text for text in tagger.tokenizer.detokenize(rows) if text]
        assert sorted(texts) == sorted("".join(word for word, _ in s) for s in SENTENCES)
        orders.append(texts)
        batches.on_epoch_end()
    assert orders[0] != orders[1]
