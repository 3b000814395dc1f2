"""The sentence loss against −log P written out in NumPy."""

import numpy as np
import pytest
from keras import ops

from kzoo.models import SentenceCrossEntropy
from kzoo.models.losses import never


def test_is_minus_log_p_of_a_sentence_on_the_average(random):
    """The third row is no sentence."""
    labels = random.integers(0, 9, (3, 5))
    logits = random.normal(size=(3, 5, 9)).astype("float32") * 3
    weights = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], "float32")
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    sentences = [np.prod([p[b, t, labels[b, t]] for t in range(n)]) for b, n in ((0, 5), (1, 2))]
    found = SentenceCrossEntropy()(labels, logits, sample_weight=weights)
    np.testing.assert_allclose(ops.convert_to_numpy(found), -np.mean(np.log(sentences)), rtol=1e-5)


def test_weights_of_zero_lose_nothing(random):
    labels = random.integers(1, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32")
    assert float(SentenceCrossEntropy()(labels, logits, np.zeros((2, 5)))) == 0


def test_smoothing_spreads_the_wanted_distribution(random):
    labels = random.integers(1, 9, (2, 5))
    logits = random.normal(size=(2, 5, 9)).astype("float32")
    log_p = logits - np.log(np.exp(logits).sum(-1, keepdims=True))
    wanted = 0.8 * np.eye(9)[labels] + 0.2 / 9
    expected = -(wanted * log_p).sum() / 2
    loss = SentenceCrossEntropy(0.2)
    np.testing.assert_allclose(float(loss(labels, logits)), expected, rtol=1e-5)
    assert SentenceCrossEntropy.from_config(loss.get_config()).get_config() == loss.get_config()


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "float16"])
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_words_that_the_language_lacks_have_no_part(dtype, smoothing, random):
    labels = random.integers(1, 9, (2, 5))
    logits = ops.cast(random.normal(size=(2, 5, 9)) * 3, dtype)
    padded = ops.concatenate([logits, ops.full((2, 5, 4), never(dtype), dtype)], axis=-1)
    loss = SentenceCrossEntropy(smoothing)
    found, expected = (ops.convert_to_numpy(loss(labels, x)) for x in (padded, logits))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
