"""Attention against NumPy written from the formula, and its cache against attention without one."""

from types import SimpleNamespace

import keras
import numpy as np
import pytest
from check_layer import assert_ignores_padding, check_layer
from keras import ops
from scipy.special import softmax

from kzoo.layers import MultiHeadAttention, RoPEEmbedding
from kzoo.layers.multi_head_attention import masked_softmax


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
    x, value = (random.normal(size=(2, length, 8)).astype("float32") for length in (5, 6))
    mask, value_mask = (np.arange(x.shape[1]) < [[x.shape[1]], [2]] for x in (x, value))
    check_layer(MultiHeadAttention(2, 4), {"query": x, "value": value, "value_mask": value_mask}, tmp_path)
    check_layer(MultiHeadAttention(2, 4, rotary=RoPEEmbedding()), {"query": x, "mask": mask}, tmp_path)


def test_a_mask_of_rows_is_that_of_all_heads(random):
    """As many heads as rows: Keras's own attention takes `(B, L, N)` too."""
    x, mask = random.normal(size=(2, 5, 8)).astype("float32"), random.random((2, 5, 5)) < 0.6
    layer = MultiHeadAttention(num_heads=2, key_dim=4)
    layer(x)
    expected, _ = attention(filled(layer, random), x, x, mask[:, None] | np.eye(5, dtype=bool))
    output = layer(x, attention_mask=mask | np.eye(5, dtype=bool))
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)


@pytest.mark.parametrize("keys", [6, 300])  # softmax before the values are mixed, and after
def test_equals_the_formula(keys, random):
    query, value = (random.normal(size=(2, length, 8)).astype("float32") for length in (5, keys))
    mask = (np.arange(keys) < [[keys], [keys - 2]])[:, None, None]
    layer = MultiHeadAttention(2, 4)
    layer(query, value)
    filled(layer, random)
    output, weights = layer(query, value, attention_mask=mask, return_attention_scores=True)
    expected, expected_weights = attention(layer, query, value, mask)
    np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), expected_weights, atol=1e-6)


def test_takes_query_value_and_key_in_the_order_of_keras(random):
    """With Keras's weights, which it has in one array a head and map."""
    query, value, key = (random.normal(size=(2, length, 8)).astype("float32") for length in (5, 6, 6))
    theirs, ours = keras.layers.MultiHeadAttention(num_heads=2, key_dim=4), MultiHeadAttention(2, 4)
    theirs(query, value, key), ours(query, value, key)
    filled(theirs, random)
    *maps, projection, offset = theirs.get_weights()  # query, key, value; kernels (8, 2, 4), biases (2, 4)
    kernels, biases = (
        [w.reshape(-1, 8) if w.ndim == 3 else w.reshape(8) for w in maps[i::2]] for i in (0, 1)
    )
    ours.set_weights(
        [np.concatenate(kernels, axis=1), np.concatenate(biases), projection.reshape(8, 8), offset]
    )
    mask = np.arange(6) < [[6], [4]]
    for masked in ({"value_mask": mask}, {"key_mask": mask}):
        found, expected = (
            ops.convert_to_numpy(layer(query, value, key, **masked)) for layer in (ours, theirs)
        )
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_a_key_needs_a_value(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    with pytest.raises(ValueError, match="key .*value"):
        MultiHeadAttention(2, 4)(x, key=x)


@pytest.mark.parametrize("length", [6, 300])
def test_learns_along_the_formula_s_slope(length, random):
    """The gradient along a random direction against the formula's difference quotient."""
    x = random.normal(size=(1, length, 8)).astype("float32")
    inputs, layer = keras.Input((length, 8)), MultiHeadAttention(2, 4)
    model = keras.Model(inputs, layer(inputs))
    before = filled(layer, random).get_weights()
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.train_on_batch(x, np.zeros_like(x))
    gradient = [(old - new) / 0.1 for old, new in zip(before, layer.get_weights(), strict=True)]
    direction = [random.normal(size=w.shape) for w in before]

    def loss(step):
        moved = [w.astype("float64") + step * d for w, d in zip(before, direction, strict=True)]
        layer = SimpleNamespace(num_heads=2, key_dim=4, get_weights=lambda: moved)
        return np.mean(attention(layer, x.astype("float64"), x.astype("float64"), True)[0] ** 2)

    slope = (loss(1e-5) - loss(-1e-5)) / 2e-5
    found = sum(np.vdot(g, d) for g, d in zip(gradient, direction, strict=True))
    np.testing.assert_allclose(found, slope, rtol=1e-3)


def test_ignores_padding(random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    mask = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)
    layer = MultiHeadAttention(2, 4)
    assert_ignores_padding(
        lambda x, m: layer(x, attention_mask=m[:, None, None]), x, mask, outputs_masked=True
    )


IDS = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0]], "int32")


def test_the_masks_of_an_embedding_and_the_caller_s_hold_both(random):
    """Against the formula: of query and value, with an attention mask and without; the query's goes on."""
    embedding = keras.layers.Embedding(9, 8, mask_zero=True, embeddings_initializer="normal")
    embedded = embedding(IDS)
    x, words, causal = ops.convert_to_numpy(embedded), IDS > 0, np.tril(np.ones((5, 5), bool))
    query = random.normal(size=(2, 3, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4)
    layer.build(x.shape)
    filled(layer, random)
    for arguments, allowed in [({}, True), ({"attention_mask": causal}, causal)]:
        output = layer(embedded, **arguments)
        expected, _ = attention(layer, x, x, words[:, None, None] & allowed)
        np.testing.assert_allclose(ops.convert_to_numpy(output), expected, atol=1e-5)
        means = [row[mask].mean(axis=0) for row, mask in zip(expected, words, strict=True)]
        pooled = keras.layers.GlobalAveragePooling1D()(output)  # means over what the mask passed on leaves
        np.testing.assert_allclose(ops.convert_to_numpy(pooled), means, atol=1e-5)
    expected, _ = attention(layer, query, x, words[:, None, None])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(query, embedded)), expected, atol=1e-5)
    # The query's own mask is not one of another value, nor of a cache.
    expected, _ = attention(layer, x, query, True)
    for arguments in ({"value": query}, {"cache": layer.keys_and_values(query)}):
        np.testing.assert_allclose(ops.convert_to_numpy(layer(embedded, **arguments)), expected, atol=1e-5)


@pytest.mark.parametrize("length", [1, 128, 300])
def test_a_causal_mask_hides_what_is_later(length, random):
    """Also in sentences of several blocks, the last one shorter; beside a mask of words; of any length."""
    x = random.normal(size=(2, length, 8)).astype("float32")
    words = np.arange(length) >= [[0], [length // 3]]
    earlier = np.tril(np.ones((length, length), bool))
    layer = MultiHeadAttention(2, 4)
    layer.build(x.shape)
    filled(layer, random)
    expected, expected_weights = attention(
        layer, x, x, words[:, None, None] & earlier | np.eye(length, dtype=bool)
    )
    output = ops.convert_to_numpy(layer(x, use_causal_mask=True, query_mask=words))
    np.testing.assert_allclose(output[words], expected[words], atol=1e-5)
    _, weights = layer(x, use_causal_mask=True, query_mask=words, return_attention_scores=True)
    weights, expected_weights = (
        np.moveaxis(w, 1, 2)[words] for w in (ops.convert_to_numpy(weights), expected_weights)
    )
    np.testing.assert_allclose(weights, expected_weights, atol=1e-6)
    inputs = keras.Input((None, 8))
    model = keras.Model(inputs, layer(inputs, use_causal_mask=True))
    expected, _ = attention(layer, x, x, earlier)
    np.testing.assert_allclose(model.predict(x, verbose=0), expected, atol=1e-5)


@pytest.mark.parametrize(("length", "rows"), [(5, 5), (300, 300), (300, 1)])
def test_a_causal_mask_with_a_bias_is_the_same_mask_with_it(length, rows, random):
    """In sentences of several blocks, each block has its part of the bias."""
    x, bias = (random.normal(size=shape).astype("float32") for shape in ((1, length, 8), (2, rows, length)))
    layer = MultiHeadAttention(2, 4)
    earlier = np.tril(np.ones((1, length, length), bool))
    expected = ops.convert_to_numpy(layer(x, attention_mask=earlier, position_bias=bias))
    found = ops.convert_to_numpy(layer(x, use_causal_mask=True, position_bias=bias))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert np.abs(found - ops.convert_to_numpy(layer(x, use_causal_mask=True))).max() > 1e-3


@pytest.mark.parametrize("length", [5, 300])
def test_weights_are_dropped_under_a_causal_mask(length, random):
    x = random.normal(size=(1, length, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, dropout=0.5)
    found = [ops.convert_to_numpy(layer(x, use_causal_mask=True, training=on)) for on in (False, True)]
    assert (np.abs(found[0] - found[1]).max(axis=-1) > 1e-6).mean() > 0.5


@pytest.mark.parametrize("index", [0, 2])
def test_scores_and_cache_can_be_asked_for_in_a_functional_model(random, index):
    x, value = keras.Input((5, 8)), keras.Input((6, 8))
    layer = MultiHeadAttention(2, 4)
    output, scores = layer(x, value, return_attention_scores=True)
    assert (output.shape, scores.shape) == ((None, 5, 8), (None, 2, 5, 6))
    arrays = [random.normal(size=(2, length, 8)).astype("float32") for length in (5, 6)]
    found = keras.Model([x, value], [output, scores])(arrays)
    for one, other in zip(found, attention(layer, *arrays, True), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(one), other, atol=1e-5)
    cache = keras.KerasTensor((None, 2, 4, 7)), keras.KerasTensor((None, 2, 7, 4))
    output, scores, written = layer(x, cache=cache, cache_index=index, return_attention_scores=True)
    assert (output.shape, scores.shape) == ((None, 5, 8), (None, 2, 5, 7))
    assert [part.shape for part in written] == [part.shape for part in cache]
    output, written = layer(x, cache=cache, cache_index=index)
    assert (output.shape, len(written)) == ((None, 5, 8), 2)
    assert layer(x).shape == (None, 5, 8)


def test_scores_of_an_unknown_length_can_be_asked_for(random):
    x = keras.Input((None, 8))
    layer = MultiHeadAttention(2, 4)
    model = keras.Model(x, layer(x, return_attention_scores=True))
    array = random.normal(size=(2, 5, 8)).astype("float32")
    for one, other in zip(model(array), attention(layer, array, array, True), strict=True):
        np.testing.assert_allclose(ops.convert_to_numpy(one), other, atol=1e-5)


@pytest.mark.parametrize(("length", "biased"), [(5, False), (5, True), (256, False)])
def test_half_precision_with_a_rotation_in_single(length, biased, random):
    """The weights have the rotation's precision, the output the layer's own."""
    x, single = (
        random.normal(size=(2, length, 8)).astype("float32"),
        MultiHeadAttention(2, 4, rotary=RoPEEmbedding()),
    )
    half = MultiHeadAttention(2, 4, rotary=RoPEEmbedding(dtype="float32"), dtype="mixed_bfloat16")
    bias = {"position_bias": random.normal(size=(2, length, length)).astype("float32")} if biased else {}
    expected = single(x, return_attention_scores=True, **bias)
    announced = half(keras.Input((length, 8)), return_attention_scores=True)
    half.set_weights(single.get_weights())
    found = half(x, return_attention_scores=True, **bias)
    assert [keras.backend.standardize_dtype(part.dtype) for part in found] == ["bfloat16", "float32"]
    if keras.backend.backend() != "torch":  # where Keras announces float32 for every inner dense layer
        assert [symbol.dtype for symbol in announced] == ["bfloat16", "float32"]
    for one, other in zip(found, expected, strict=True):
        one, other = (ops.convert_to_numpy(ops.cast(part, "float32")) for part in (one, other))
        np.testing.assert_allclose(one, other, atol=0.05)


@pytest.mark.parametrize("length", [3, 300])
def test_large_numbers_stay_numbers_in_float16(length):
    """q · k, 1.6e5, and the sum of 300 values are beyond float16; q · k / sqrt(d) and their mean are not."""
    x = np.full((1, length, 64), 50.0, "float16")
    layer = MultiHeadAttention(1, 64, dtype="float16")
    layer.build(x.shape)
    kernel = np.concatenate([np.eye(64), np.eye(64), 10 * np.eye(64)], axis=1)
    layer.set_weights([kernel, np.zeros(192), np.eye(64), np.zeros(64)])
    # TensorFlow adds in float16.
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), 10 * x, rtol=0.03)


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


@pytest.mark.parametrize("rotary", [None, RoPEEmbedding()], ids=["plain", "rotary"])
def test_the_query_itself_as_value_or_cache_is_self_attention(rotary, random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, rotary=rotary)
    itself = ops.convert_to_numpy(layer(x))
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x, x)), itself, atol=1e-6)
    cached = layer(x, cache=layer.keys_and_values(x))
    np.testing.assert_allclose(ops.convert_to_numpy(cached), itself, atol=1e-6)


def test_dropout_is_on_the_weights(random):
    """Of one value everywhere, a weight's share is kept or dropped as a whole."""
    layer = MultiHeadAttention(1, 4, dropout=0.5)
    x = np.ones((1, 5, 4), "float32")
    layer.build(x.shape)
    layer.set_weights([np.tile(np.eye(4), 3), np.zeros(12), np.eye(4), np.zeros(4), *layer.get_weights()[4:]])
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x, training=False)), x, atol=1e-6)
    noisy, weights = layer(x, return_attention_scores=True, training=True)
    np.testing.assert_allclose(ops.convert_to_numpy(weights), 1 / 5, atol=1e-6)
    noisy = ops.convert_to_numpy(noisy)[0]
    np.testing.assert_allclose(noisy, np.repeat(noisy[:, :1], 4, axis=1), atol=1e-6)
    np.testing.assert_allclose(noisy * 2.5, np.round(noisy * 2.5), atol=1e-5)  # of 5 weights of 2/5
    assert np.abs(noisy - 1).max() > 0.1


def test_rotary_attention_knows_only_distances(random):
    """Query, key and value three positions on, the cache's keys with them: the same weights."""
    x = random.normal(size=(2, 4, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, rotary=RoPEEmbedding())
    here, there = (
        ops.convert_to_numpy(layer(x, positions=np.arange(4, dtype="int32") + shift)) for shift in (0, 3)
    )
    np.testing.assert_allclose(here, there, atol=1e-5)


BIASED = {"position_bias": np.ones((2, 5, 5), "float32")}


@pytest.fixture
def fused(monkeypatch):
    """Make the layer compute as on a GPU for 5 keys or more; return its fused operations' arguments."""
    calls, operation = [], ops.dot_product_attention
    for name, value in {"on_gpu": lambda: True, "FUSED_FROM": 5}.items():
        monkeypatch.setattr(f"kzoo.layers.multi_head_attention.{name}", value)
    monkeypatch.setattr(
        ops, "dot_product_attention", lambda *x, **how: calls.append(how) or operation(*x, **how)
    )
    return calls


@pytest.mark.parametrize(("keys", "operations"), [(4, 0), (5, 1)])
def test_a_gpu_fuses_attention_over_many_keys(keys, operations, fused):
    MultiHeadAttention(2, 4)(np.ones((2, 6, 8), "float32"), np.ones((2, keys, 8), "float32"))
    assert len(fused) == operations


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="another backend's kernel")
@pytest.mark.parametrize(("length", "flash"), [(5, False), (6, None)])
def test_an_odd_length_does_not_try_jax_s_kernel(length, flash, fused, random):
    """The kernel refuses odd lengths in training."""
    MultiHeadAttention(2, 4)(random.normal(size=(2, length, 8)).astype("float32"))
    assert [call["flash_attention"] for call in fused] == [flash]


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query_mask": IDS > 0},
        {"use_causal_mask": True},
        {"use_causal_mask": True, "query_mask": IDS > 0},
        {"attention_mask": np.tril(np.ones((2, 5, 5), bool))},
        {"value": np.linspace(-1, 1, 96).reshape(2, 6, 8).astype("float32")},
        {"value": np.ones((2, 6, 8), "float32"), "value_mask": np.arange(6) < [[6], [2]]},
    ],
    ids=["all", "words", "causal", "causal words", "mask", "value", "value words"],
)
def test_a_gpu_s_fused_operation_is_the_same_attention(arguments, fused, monkeypatch, random):
    """Outputs, and gradients as a step of SGD shows them, against those of a CPU."""
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, rotary=RoPEEmbedding())
    layer.build(x.shape)
    start = [w.copy() for w in filled(layer, random).get_weights()]

    def trained():
        inputs = keras.Input((5, 8), batch_size=2)
        model = keras.Model(inputs, layer(inputs, **arguments))
        layer.set_weights(start)
        model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=keras.backend.backend() == "jax")
        output = model.predict_on_batch(x)
        model.train_on_batch(x, np.zeros_like(x))
        return [output, *layer.get_weights()]

    on_gpu, operations = trained(), len(fused)
    assert operations > 0
    monkeypatch.setattr("kzoo.layers.multi_head_attention.on_gpu", lambda: False)
    for one, other in zip(on_gpu, trained(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5)
    assert len(fused) == operations


def test_kernels_get_half_precision_and_whole_masks(fused, random):
    """A rotation in float32 and a mask `(B, 1, 1, N)` would keep cuDNN's kernels from being used."""
    layer = MultiHeadAttention(2, 4, rotary=RoPEEmbedding(dtype="float32"), dtype="mixed_bfloat16")
    found = layer(random.normal(size=(2, 5, 8)), query_mask=IDS > 0)
    assert keras.backend.standardize_dtype(found.dtype) == "bfloat16"
    assert tuple(fused[0]["mask"].shape)[2:] == (5, 5)


@pytest.mark.parametrize("plain", [BIASED, {"return_attention_scores": True}, {"training": True}])
@pytest.mark.parametrize("causal", [False, True])
def test_what_the_fused_operation_lacks_is_computed_without_it(plain, causal, fused, random):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    layer = MultiHeadAttention(2, 4, dropout=0.5 if "training" in plain else 0.0)
    layer(x, use_causal_mask=causal, **plain)
    assert not fused


def test_the_masked_softmax_is_scipy_s_of_what_is_left(random):
    scores, mask = random.normal(size=(2, 3, 5)).astype("float32"), np.array([1, 1, 0, 1, 0], bool)
    found = ops.convert_to_numpy(masked_softmax(scores, mask))
    np.testing.assert_allclose(found[..., mask], softmax(scores[..., mask], axis=-1), atol=1e-6)
    np.testing.assert_array_equal(found[..., ~mask], 0)
    np.testing.assert_allclose(
        ops.convert_to_numpy(masked_softmax(scores)), softmax(scores, axis=-1), atol=1e-6
    )


def test_the_softmax_of_nothing_is_even_and_half_precision_stays():
    found = masked_softmax(ops.cast([[1.0, 5.0, 9.0, 2.0]], "bfloat16"), np.zeros((1, 4), bool))
    assert "bfloat16" in str(found.dtype)
    np.testing.assert_array_equal(ops.convert_to_numpy(ops.cast(found, "float32")), np.full((1, 4), 0.25))
