"""The loss against cross-entropy with the smoothed distribution written out."""

import math

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.models import ConsistentCrossEntropy, LabelSmoothedCrossEntropy, SentenceCrossEntropy


def test_equals_cross_entropy_with_the_smoothed_distribution(random):
    labels = random.integers(0, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32") * 3
    weights = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], "float32")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = 0.9 * np.eye(9)[labels] + 0.1 / 9
    expected = (-(wanted * log_p).sum(-1) * weights).sum() / weights.sum()
    loss = LabelSmoothedCrossEntropy(0.1)(labels, logits, sample_weight=weights)
    np.testing.assert_allclose(ops.convert_to_numpy(loss), expected, rtol=1e-5)
    again = LabelSmoothedCrossEntropy.from_config(LabelSmoothedCrossEntropy(0.2).get_config())
    assert again.label_smoothing == 0.2


def uniform_but_at_padding(copies=1):
    """Return labels of three and one words, and logits: all 10 words alike; padding where it is improbable.

    A word loses ln 10 = 2.30; the mean over padding too would be 5.61.
    """
    labels = np.array([[5, 7, 9, 0], [3, 0, 0, 0]], "int32")
    logits = np.zeros((2, 4, 10), "float32")
    logits[labels == 0, 0] = -8.9155 + np.log(9)
    return np.repeat(labels, copies, 0), np.repeat(logits, copies, 0)


def test_without_weights_label_0_does_not_count():
    labels, logits = uniform_but_at_padding()
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    lost = -np.take_along_axis(log_p, labels[..., None], -1)[..., 0]
    assert lost.mean() == pytest.approx(5.61, abs=0.01)
    assert float(LabelSmoothedCrossEntropy(0.0)(labels, logits)) == pytest.approx(math.log(10))
    assert float(LabelSmoothedCrossEntropy(0.1)(labels, logits)) == pytest.approx(math.log(10))
    assert float(SentenceCrossEntropy()(labels, logits)) == pytest.approx((3 + 1) / 2 * math.log(10))
    twice = ConsistentCrossEntropy(0.0)(*uniform_but_at_padding(2))
    assert float(twice) == pytest.approx(math.log(10))


def test_it_is_over_as_many_tokens_as_have_a_weight():
    assert LabelSmoothedCrossEntropy().count(ops.convert_to_tensor([[1.0, 1.0, 0.0]])) == 2


@pytest.mark.parametrize("loss", [LabelSmoothedCrossEntropy(), SentenceCrossEntropy()])
def test_weights_of_sentences_are_refused(loss):
    """Of three sentences of three tokens they would be taken for weights of places."""
    with pytest.raises(ValueError, match=r"takes a weight for each token, \(B, T\).* not \(3,\)"):
        loss(np.zeros((3, 3), "int32"), np.zeros((3, 3, 9), "float32"), sample_weight=np.ones(3, "float32"))


def test_weights_of_sentences_are_refused_by_name_in_a_model_too():
    model = keras.Sequential([keras.layers.Embedding(9, 9)])
    model.compile("sgd", LabelSmoothedCrossEntropy())
    words = np.ones((5, 3), "int32")
    with pytest.raises(ValueError, match=r"takes a weight for each token, \(B, T\)"):
        model.fit(words, words, sample_weight=np.ones(5, "float32"), batch_size=2, verbose=0)
