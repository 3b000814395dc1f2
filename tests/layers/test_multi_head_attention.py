"""Attention against NumPy written from the formula, and its cache against attention without one."""

import numpy as np
from check_layer import assert_ignores_padding, check_layer
from keras import ops

from kzoo.layers import MultiHeadAttention, RoPEEmbedding


def attention(layer, query, value, mask):
    """Return softmax(Q Kᵀ / sqrt(d)) V of each head, projected, and the weights."""
    H, d = layer.num_heads, layer.key_dim
    kernel, bias = (np.array(w).reshape(*w.shape[:-1], 3, H, d) for w in layer.get_weights()[:2])
    q = np.einsum("bld,dhe->bhle", query, kernel[:, 0]) + bias[0][:, None]
    k = np.einsum("bnd,dhe->bhne", value, kernel[:, 1]) + bias[1][:, None]
    v = np.einsum("bnd,dhe->bhne", value, kernel[:, 2]) + bias[2][:, None]
    scores = np.where(mask, np.einsum("bhle,bhne->bhln", q, k) / np.sqrt(d), -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    weights /= weights.sum(-1, keepdims=True)
    mixed = np.einsum("bhln,bhne->blhe", weights, v).reshape(*query.shape[:2], H * d)
    projection, offset = layer.get_weights()[2:]
    return mixed @ projection + offset, weights


def filled(layer, random):
    """Give every weight, biases too, a random value."""
    layer.set_weights([random.normal(size=w.shape) * 0.3 for w in layer.get_weights()])
    return layer


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    check_layer(MultiHeadAttention(2, 4), {"query": x}, tmp_path)
    check_layer(MultiHeadAttention(2, 4, rotary=RoPEEmbedding()), {"query": x}, tmp_path)


def test_equals_the_formula(random):
    query, value = (
        random.normal(size=(2, 5, 8)).astype("float32"),
        random.normal(size=(2, 6, 8)).astype("float32"),
    )
    mask = np.array([1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0], bool).reshape(2, 1, 1, 6)
    layer = MultiHeadAttention(2, 4)
    layer(query, value)
    filled(layer, random)
    output, weights = layer(query, value, attention_mask=mask, return_attention_scores=True)
    expected, expected_weights = attention(layer, query, value, mask)
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected_weights, atol=1e-6)


def test_ignores_padding(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    layer = MultiHeadAttention(2, 4)
    assert_ignores_padding(
        lambda x, m: layer(x, attention_mask=m[:, None, None]), x, mask, outputs_masked=True
    )


def test_cache_gives_what_the_whole_sequence_gives(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    for rotary in (None, RoPEEmbedding()):
        layer = MultiHeadAttention(2, 4, rotary=rotary)
        layer(x)
        filled(layer, random)
        whole = ops.convert_to_numpy(layer(x, attention_mask=np.tril(np.ones((5, 5), bool))))
        cache = (np.zeros((2, 2, 4, 5), "float32"), np.zeros((2, 2, 5, 4), "float32"))
        for step in range(5):
            word, cache = layer(
                x[:, step : step + 1],
                attention_mask=(np.arange(5) <= step)[None, None, None],
                cache=cache,
                cache_index=step,
                positions=np.array([step], "int32"),
            )
            np.testing.assert_allclose(ops.convert_to_numpy(word)[:, 0], whole[:, step], atol=1e-5)


def test_a_read_only_cache_is_the_source(random):
    query, value = (
        random.normal(size=(2, 3, 8)).astype("float32"),
        random.normal(size=(2, 6, 8)).astype("float32"),
    )
    for rotary in (None, RoPEEmbedding()):
        layer = MultiHeadAttention(2, 4, rotary=rotary)
        expected = ops.convert_to_numpy(layer(query, value))
        cached = layer(query, cache=layer.keys_and_values(value))
        np.testing.assert_allclose(ops.convert_to_numpy(cached), expected, atol=1e-6)


def test_rotary_attention_knows_only_distances(random):
    """Query, key and value three positions on, the cache's keys with them: the same weights."""
    x = random.normal(size=(2, 4, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, rotary=RoPEEmbedding())
    here, there = (
        ops.convert_to_numpy(layer(x, positions=np.arange(4, dtype="int32") + shift)) for shift in (0, 3)
    )
    np.testing.assert_allclose(here, there, atol=1e-5)
