"""The feed-forward network against its formula."""

import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers.transformer_layer import FeedForward


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(FeedForward(16), {"inputs": random.normal(size=(2, 5, 8)).astype("float32")}, tmp_path)


def test_equals_the_formula(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = FeedForward(16)
    layer(x)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    w1, b1, w2, b2 = layer.get_weights()
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(x)), np.maximum(x @ w1 + b1, 0) @ w2 + b2, atol=1e-3
    )
