"""Layers that compute a part in single precision, where all else is double."""

import keras
import numpy as np
import pytest

from kzoo.layers import AttentionBridge, GlyphCharEncoder, GlyphEmbedding, LinearChainCRF

X = np.random.default_rng(1).normal(size=(2, 3, 6))
GLYPHS = np.random.default_rng(1).random((8, 22, 22)) > 0.7


@pytest.mark.parametrize(
    ("make", "x", "options"),
    [
        (lambda: AttentionBridge(2, 4), X, {}),
        (lambda: GlyphCharEncoder(4, "cnn_fc_relu", 4), GLYPHS, {"training": True}),
        (lambda: GlyphEmbedding(GLYPHS, GlyphCharEncoder(4, "cnn_fc_relu", 4)), np.array([[4, 5]]), {}),
        (lambda: LinearChainCRF(6), X, {}),
    ],
)
def test_layers_heed_the_user_s_float_type(make, x, options):
    before = keras.config.floatx()
    keras.config.set_floatx("float64")
    try:
        found = make()(x, **options)
    finally:
        keras.config.set_floatx(before)
    assert all(np.isfinite(keras.ops.convert_to_numpy(part)).all() for part in keras.tree.flatten(found))
