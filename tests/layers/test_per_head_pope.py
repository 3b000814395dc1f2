"""PoPE in the heads against SciPy's Legendre polynomials, alone and in attention."""

import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from scipy.special import eval_legendre

from kzoo.layers import MultiHeadAttention, PerHeadPoPE


def encoding(positions, width):
    return eval_legendre(np.asarray(positions)[..., None], -1 + 2 * np.arange(width) / width)


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(PerHeadPoPE(), {"inputs": random.normal(size=(2, 3, 5, 8)).astype("float32")}, tmp_path)


@pytest.mark.parametrize("positions", [None, [4, 4, 0, 90, 2], [[0, 1, 2, 3, 4], [9, 8, 7, 6, 5]]])
def test_adds_the_polynomials_of_its_own_width(positions, random):
    x = random.normal(size=(2, 3, 5, 8)).astype("float32")
    expected = encoding(np.arange(5) if positions is None else positions, 8)
    expected = x + (expected if expected.ndim == 2 else expected[:, None])
    given = None if positions is None else np.array(positions, "int32")
    np.testing.assert_allclose(ops.convert_to_numpy(PerHeadPoPE()(x, positions=given)), expected, atol=1e-5)


def test_orders_and_lengths_are_those_of_the_layer_it_extends(random):
    x = random.normal(size=(1, 1, 3, 8)).astype("float32")
    expected = x + encoding([2, 3, 4], 8) * np.sqrt(np.array([[2.5], [3.5], [4.5]]))
    found = PerHeadPoPE(max_length=3, first_order=2, normalize=True)(x)
    np.testing.assert_allclose(ops.convert_to_numpy(found), expected, atol=1e-5)
    with pytest.raises(ValueError, match="max_length=2"):
        PerHeadPoPE(max_length=2)(x)


def test_attention_scores_have_it_in_queries_and_keys_alone(random):
    """(q_m + PE(m)) · (k_n + PE(n)) / √d in each head, the values as without: against NumPy."""
    x = random.normal(size=(2, 6, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, rotary=PerHeadPoPE())
    output, weights = layer(x, return_attention_scores=True)
    q, k, v = (np.moveaxis(part.reshape(2, 6, 2, 4), 2, 1) for part in np.split(x @ layer.kernel, 3, -1))
    positions = encoding(np.arange(6), 4)
    scores = np.einsum("bhmd,bhnd->bhmn", q + positions, k + positions) / 2
    expected = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected, atol=1e-6)
    mixed = np.einsum("bhmn,bhnd->bmhd", expected, v).reshape(2, 6, 8)
    np.testing.assert_allclose(ops.convert_to_numpy(output), mixed @ layer.output_dense.kernel, atol=1e-5)
