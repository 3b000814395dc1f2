"""The weighted loss: every form in which Keras takes a loss, and its own."""

import keras
import numpy as np
import pytest

from kzoo.models import LabelSmoothedCrossEntropy
from kzoo.models.recurrent import LanguageModel

WORDS, LABELS = np.array([[1, 2, 3], [4, 5, 0]], "int32"), np.array([[2, 3, 1], [5, 1, 0]], "int32")
PLAIN = "sparse_categorical_crossentropy"


def trained(kind, loss, weights=None) -> tuple[float, np.ndarray]:
    """Return the loss of a small model, and its first weights after a step."""
    keras.utils.set_random_seed(1)
    x = keras.Input((None,), dtype="int32")
    model = kind(x, keras.layers.Dense(6, "softmax")(keras.layers.Embedding(6, 4)(x)))
    model.compile(keras.optimizers.SGD(1.0), loss, jit_compile=False)
    return float(model.train_on_batch(WORDS, LABELS, weights)), model.get_weights()[0]


@pytest.mark.parametrize(
    "loss",
    [
        PLAIN,
        [PLAIN],
        keras.losses.SparseCategoricalCrossentropy(),
        [keras.losses.SparseCategoricalCrossentropy()],
        keras.losses.sparse_categorical_crossentropy,
        LabelSmoothedCrossEntropy(),
    ],
    ids=["name", "names", "object", "objects", "function", "ours"],
)
def test_on_one_device_every_loss_is_what_keras_makes_of_it(loss):
    (loss_, weights), (expected, expected_weights) = (trained(k, loss) for k in (LanguageModel, keras.Model))
    assert loss_ == pytest.approx(expected, rel=1e-6) and loss_ > 0
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)


def test_weights_count_as_in_keras():
    weights = np.array([[1, 3, 0], [2, 0, 0]], "float32")
    (loss, _), (expected, _), (unweighted, _) = (
        trained(kind, LabelSmoothedCrossEntropy(), given)
        for kind, given in ((LanguageModel, weights), (keras.Model, weights), (LanguageModel, None))
    )
    assert loss == pytest.approx(expected, rel=1e-6)
    assert abs(loss - unweighted) > 1e-4
