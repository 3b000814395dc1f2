"""What a batch's pictures leave in the model: nothing of rows that only fill it up, and it is saved."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.models import TransformerBackbone

pytestmark = pytest.mark.usefixtures("untraced")

SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16}


def statistics(backbone) -> list[np.ndarray]:
    return [ops.convert_to_numpy(v) for v in backbone.non_trainable_variables if "moving" in v.path]


def trained(filler: int) -> keras.Model:
    """A model after a step on two sentences with pictures, and a row without words with another picture."""
    keras.utils.set_random_seed(2)
    backbone = TransformerBackbone(12, image_shape=(16, 16, 3), position_encoding="sine", **SIZES)
    random = np.random.default_rng(2)
    words = random.integers(4, 12, (3, 5)).astype("int32")
    words[2] = 0
    pictures = random.integers(0, 256, (3, 16, 16, 3)).astype("float32")
    pictures[2] = filler
    backbone.compile(optimizer="sgd", loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    backbone.train_on_batch({"source": words, "target": words, "image": pictures}, words)
    return backbone


def test_rows_without_words_leave_no_trace():
    dark, light = statistics(trained(0)), statistics(trained(255))
    assert len(dark) == 8
    for a, b in zip(dark, light, strict=True):
        np.testing.assert_array_equal(a, b)
        assert not np.isin(a, (0, 1)).all()  # it moved


def test_they_are_saved_with_the_weights(tmp_path):
    backbone = trained(0)
    backbone.save_weights(tmp_path / "model.weights.h5")
    again = TransformerBackbone(12, image_shape=(16, 16, 3), position_encoding="sine", **SIZES)
    again.load_weights(tmp_path / "model.weights.h5")
    for a, b in zip(statistics(backbone), statistics(again), strict=True):
        np.testing.assert_array_equal(a, b)
