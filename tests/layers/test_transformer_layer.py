"""The feed-forward network and the residual connection of Transformer layers, by their formulas."""

import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers.transformer_layer import FeedForward, Residual


def normalized(x):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)


def test_the_residual_connection_behaves_as_a_layer(random, tmp_path):
    x, y = random.normal(size=(2, 2, 5, 8)).astype("float32")
    check_layer(Residual("post"), {"inputs": x, "outputs": y}, tmp_path)


def test_post_and_pre_norm(random):
    x, y = random.normal(size=(2, 2, 5, 8)).astype("float32")
    post, pre = Residual("post"), Residual("pre")
    np.testing.assert_allclose(ops.convert_to_numpy(post(x, y)), normalized(x + y), atol=1e-5)
    np.testing.assert_array_equal(ops.convert_to_numpy(post.enter(x)), x)
    np.testing.assert_allclose(ops.convert_to_numpy(pre(x, y)), x + y, atol=1e-6)
    np.testing.assert_allclose(ops.convert_to_numpy(pre.enter(x)), normalized(x), atol=1e-5)


def test_dropout_is_on_the_sublayer_s_output_alone():
    x, nothing = np.ones((2, 5, 8), "float32"), np.zeros((2, 5, 8), "float32")
    residual = Residual("pre", dropout=0.5)
    np.testing.assert_array_equal(ops.convert_to_numpy(residual(x, nothing, training=True)), x)
    assert set(ops.convert_to_numpy(residual(nothing, x, training=True)).ravel()) == {0, 2}


def test_the_feed_forward_network_behaves_as_a_layer(random, tmp_path):
    check_layer(FeedForward(16), {"inputs": random.normal(size=(2, 5, 8)).astype("float32")}, tmp_path)


def test_the_feed_forward_network_equals_the_formula(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = FeedForward(16)
    layer(x)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    w1, b1, w2, b2 = layer.get_weights()
    np.testing.assert_allclose(
        ops.convert_to_numpy(layer(x)), np.maximum(x @ w1 + b1, 0) @ w2 + b2, atol=1e-3
    )
