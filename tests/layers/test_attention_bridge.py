"""The attention bridge against NumPy written from Eq. 1 to 3."""

import keras
import numpy as np
import pytest
from check_layer import assert_ignores_padding, check_layer
from keras import ops

from kzoo.layers import AttentionBridge

MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0], [0, 0, 0, 0, 0]], bool)


def bridge(H, maps):
    """Return M and A of one sentence: H `(n, d)`; maps are W₁ᵀ, W₂ᵀ, or each with its bias."""
    inner, outer = maps[: len(maps) // 2], maps[len(maps) // 2 :]
    hidden = np.maximum(H @ inner[0] + sum(inner[1:]), 0)
    scores = (hidden @ outer[0] + sum(outer[1:])).T
    A = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
    return A @ H, A


def penalty(A):
    return np.linalg.norm(A @ A.T - np.eye(len(A)), "fro") ** 2


def made(random, **settings):
    """Return a bridge with random weights, biases too, of 3 heads, and inputs for `MASK`."""
    layer = AttentionBridge(num_heads=3, hidden_dim=6, **settings)
    x = random.normal(size=(3, 5, 4)).astype("float32")
    layer(x)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    return layer, x


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(3, 5, 4)).astype("float32")
    check_layer(AttentionBridge(num_heads=3, hidden_dim=16), {"inputs": x, "mask": MASK}, tmp_path)


@pytest.mark.parametrize("use_bias", [False, True])
def test_equals_the_equations(use_bias, random):
    """Each sentence on its own, without its padding."""
    layer, x = made(random, use_bias=use_bias)
    M, A = (ops.convert_to_numpy(y) for y in layer(x, mask=MASK, return_attention_scores=True))
    for sentence, mask, matrix, scores in zip(x[:2], MASK, M, A, strict=False):
        expected_matrix, expected_scores = bridge(sentence[mask], layer.get_weights())
        np.testing.assert_allclose(matrix, expected_matrix, atol=1e-5)
        np.testing.assert_allclose(scores[:, mask], expected_scores, atol=1e-6)
        np.testing.assert_array_equal(scores[:, ~mask], 0)
    matrix, scores = layer.attend(x, MASK)
    np.testing.assert_array_equal(ops.convert_to_numpy(matrix), M)
    np.testing.assert_array_equal(ops.convert_to_numpy(scores), A)


def test_penalty_is_a_mean_over_sentences(random):
    """A row without words is no sentence; without a mask all rows are."""
    layer, x = made(random, penalty_weight=0.5)
    each = [penalty(bridge(H[m], layer.get_weights())[1]) for H, m in zip(x[:2], MASK, strict=False)]
    layer(x, mask=MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.losses[0]), 0.5 * np.mean(each), rtol=1e-5)
    layer(x)
    each = [penalty(bridge(H, layer.get_weights())[1]) for H in x]
    np.testing.assert_allclose(ops.convert_to_numpy(layer.losses[0]), 0.5 * np.mean(each), rtol=1e-5)
    layer(x, mask=np.zeros_like(MASK))
    assert float(layer.losses[0]) == 0


def test_the_authors_code_does_not_square_the_norm(random):
    layer, x = made(random, use_bias=True, squared=False)
    each = [np.sqrt(penalty(bridge(H[m], layer.get_weights())[1])) for H, m in zip(x[:2], MASK, strict=False)]
    layer(x, mask=MASK)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.losses[0]), np.mean(each), rtol=1e-5)


def test_heads_that_are_orthonormal_have_a_gradient():
    """Of one head over one word the penalty is 0."""
    x = keras.Input((1, 4))
    model = keras.Model(x, AttentionBridge(num_heads=1, hidden_dim=8, use_bias=True, squared=False)(x))
    model.compile("sgd", "mse")
    model.train_on_batch(np.ones((2, 1, 4)), np.zeros((2, 1, 4)))
    assert all(np.isfinite(weights).all() for weights in model.get_weights())


def test_translation_adds_no_penalty(random):
    layer = AttentionBridge(num_heads=3, hidden_dim=6)
    layer.build((3, 5, 4))
    layer.attend(random.normal(size=(3, 5, 4)).astype("float32"), MASK)
    assert layer.losses == []


def test_ignores_padding(random):
    layer, x = made(random)
    assert_ignores_padding(lambda x, m: layer(x, mask=m), x[:2], MASK[:2], outputs_masked=False)


def test_scores_can_be_asked_for_in_a_functional_model():
    inputs = keras.Input((5, 8))
    matrix, scores = AttentionBridge(3, 4)(inputs, return_attention_scores=True)
    assert (matrix.shape, scores.shape) == ((None, 3, 8), (None, 3, 5))
    x = np.random.default_rng(0).normal(size=(2, 5, 8)).astype("float32")
    found = keras.Model(inputs, [matrix, scores])(x)
    expected = ops.matmul(found[1], x)
    np.testing.assert_allclose(ops.convert_to_numpy(found[0]), ops.convert_to_numpy(expected), atol=1e-5)
