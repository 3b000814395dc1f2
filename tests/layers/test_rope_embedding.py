"""RoPE against rotations written as complex numbers."""

import keras
import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers import RoPEEmbedding


def rotated(x, positions):
    """Turn the pairs (i, i + d/2) of `x` `(…, L, d)`, as complex numbers, by position · 10000^(-2i/d)."""
    half = x.shape[-1] // 2
    angles = positions[:, None] * 10000.0 ** (-np.arange(half) / half)
    turned = (x[..., :half] + 1j * x[..., half:]) * np.exp(1j * angles)
    return np.concatenate([turned.real, turned.imag], axis=-1)


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(RoPEEmbedding(), {"inputs": random.normal(size=(2, 3, 5, 8)).astype("float32")}, tmp_path)


def test_equals_complex_rotation(random):
    x = random.normal(size=(2, 3, 7, 16)).astype("float32")
    np.testing.assert_allclose(ops.convert_to_numpy(RoPEEmbedding()(x)), rotated(x, np.arange(7)), atol=1e-5)
    positions = np.array([4, 4, 4, 0, 1, 90, 2], "int32")
    turned = ops.convert_to_numpy(RoPEEmbedding()(x, positions=positions))
    np.testing.assert_allclose(turned, rotated(x, positions), atol=1e-4)


def test_products_depend_on_distance_alone(random):
    q, k = random.normal(size=(2, 1, 1, 1, 16)).astype("float32")
    rope = RoPEEmbedding()

    def product(m, n):
        m, n = np.array([m], "int32"), np.array([n], "int32")
        return float(ops.convert_to_numpy(ops.sum(rope(q, positions=m) * rope(k, positions=n))))

    np.testing.assert_allclose(product(3, 1), product(53, 51), rtol=1e-4)


def test_carries_a_mask_on():
    """Means over what the mask leaves, `(B, L, d)` being rotated as `(B, H, L, d)` is."""
    ids = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0]], "int32")
    embedded = keras.layers.Embedding(9, 8, mask_zero=True)(ids)
    pooled = keras.layers.GlobalAveragePooling1D()(RoPEEmbedding()(embedded))
    turned = rotated(ops.convert_to_numpy(embedded), np.arange(5))
    means = [row[words].mean(axis=0) for row, words in zip(turned, ids > 0, strict=True)]
    np.testing.assert_allclose(ops.convert_to_numpy(pooled), means, atol=1e-5)
