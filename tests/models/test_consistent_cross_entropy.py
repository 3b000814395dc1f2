"""The loss of R-Drop, against SciPy."""

import keras
import numpy as np
import pytest
from scipy.special import log_softmax
from scipy.stats import entropy

from kzoo.data import Batches, TwiceEachRow
from kzoo.models import ConsistentCrossEntropy, LabelSmoothedCrossEntropy

random = np.random.default_rng(0)
LOGITS = random.normal(size=(4, 3, 7)).astype("float32")
LABELS = np.repeat(random.integers(1, 7, (2, 3)), 2, axis=0)
WEIGHTS = np.repeat([[1.0, 1.0, 0.0], [1.0, 1.0, 1.0]], 2, axis=0).astype("float32")


def test_is_half_the_sum_that_the_paper_minimizes():
    """Liang et al. 2021, Eq. 4: both passes' cross-entropy, plus α/2 times both divergences."""
    log_p = log_softmax(LOGITS, axis=-1)
    nll = -np.take_along_axis(log_p, LABELS[..., None], axis=-1)[..., 0]
    p = np.exp(log_p)
    total = 0.0
    for first, second in ((0, 1), (2, 3)):
        for t in range(3):
            both = entropy(p[first, t], p[second, t]) + entropy(p[second, t], p[first, t])
            total += WEIGHTS[first, t] * (nll[first, t] + nll[second, t] + 5.0 / 2 * both)
    found = float(ConsistentCrossEntropy(0.0, 5.0)(LABELS, LOGITS, WEIGHTS))
    assert found == pytest.approx(total / 2 / WEIGHTS[::2].sum(), rel=1e-5)


def test_equal_passes_leave_label_smoothed_cross_entropy():
    twice = np.repeat(LOGITS[::2], 2, axis=0)
    found = ConsistentCrossEntropy(0.1, 5.0)(LABELS, twice, WEIGHTS)
    plain = LabelSmoothedCrossEntropy(0.1)(LABELS, twice, WEIGHTS)
    assert float(found) == pytest.approx(float(plain), rel=1e-6)


def test_rows_stand_twice():
    batches = Batches([[5], [6, 7]], [[8, 9], [4]], tokens=6, num_shapes=1)
    inputs, labels, weights = TwiceEachRow(batches)[0]
    once_inputs, once_labels, once_weights = batches[0]
    for twice, once in [(inputs[name], once_inputs[name]) for name in inputs] + [
        (labels, once_labels),
        (weights, once_weights),
    ]:
        np.testing.assert_array_equal(twice[0::2], once)
        np.testing.assert_array_equal(twice[1::2], once)


def test_survives_its_configuration():
    loss = ConsistentCrossEntropy(0.2, 3.0)
    again = keras.losses.deserialize(keras.losses.serialize(loss))
    assert (again.label_smoothing, again.consistency) == (0.2, 3.0)
