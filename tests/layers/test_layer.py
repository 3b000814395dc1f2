"""Keras's layers of a matrix, applied to the rows of tensors of any rank."""

import inspect

import keras
import numpy as np
import pytest
from keras import ops

from kzoo import layers
from kzoo.layers import OutputBias
from kzoo.layers.convolutional_encoder import ConvolutionalEncoder
from kzoo.layers.dense import Dense, ReversibleEmbedding
from kzoo.layers.glyph_char_encoder import GlyphConvolutions
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import MultiHeadAttention

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4), (2, 3, 5, 4), (0, 3, 4)])
def test_dense_multiplies_the_last_axis(shape):
    layer = Dense(6, "relu")
    layer.build(shape)
    x, kernel, bias = RNG.normal(size=shape), RNG.normal(size=(4, 6)), RNG.normal(size=6)
    layer.set_weights([kernel, bias])
    expected = np.maximum(np.einsum("...d,de->...e", x, kernel) + bias, 0)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (Dense(40), (256, 16, 40)),
        (MultiHeadAttention(4, 10), (256, 16, 40)),
        (ConvolutionalEncoder(40, num_layers=1), (256, 16, 40)),
        (OutputBias(), (256, 16, 40)),
        (GlyphConvolutions(), (32, 22, 22)),
    ],
    ids=lambda value: type(value).__name__,
)
def test_half_precision_sums_a_biass_gradient_in_float32(layer, shape):
    """In bfloat16, a sum of 4,096 equal numbers would stop at the 256th."""
    moved = {}
    for dtype in ("float32", "mixed_bfloat16"):
        inputs = keras.Input(shape[1:])
        copied = type(layer).from_config({**layer.get_config(), "dtype": dtype, "name": dtype})
        model = keras.Model(inputs, copied(inputs))
        random = np.random.default_rng(1)
        model.set_weights([random.normal(0.1, 0.1, weight.shape) for weight in model.get_weights()])
        before = {
            weight.path.partition("/")[2]: ops.convert_to_numpy(weight) for weight in copied.trainable_weights
        }
        model.compile(keras.optimizers.SGD(1.0), lambda true, found: ops.mean(found), jit_compile=False)
        model.train_on_batch(np.zeros(shape), np.zeros(shape))
        moved[dtype] = {
            path: ops.convert_to_numpy(weight) - before[path]
            for path, weight in zip(before, copied.trainable_weights, strict=True)
            if "bias" in path
        }
    for path, expected in moved["float32"].items():
        tolerance = 0.05 * np.abs(expected).max()
        np.testing.assert_allclose(moved["mixed_bfloat16"][path], expected, atol=tolerance, err_msg=path)


@pytest.mark.parametrize(
    ("reverse_dtype", "dtype"), [(None, "bfloat16"), ("float32", "float32"), ("bfloat16", "bfloat16")]
)
def test_an_embedding_reversed_computes_in_the_layers_precision_or_a_given_one(reverse_dtype, dtype):
    layer = ReversibleEmbedding(7, 4, reverse_dtype=reverse_dtype, dtype="mixed_bfloat16")
    for each in layer, ReversibleEmbedding.from_config({**layer.get_config(), "name": "again"}):
        inputs = keras.Input((3, 4))
        model = keras.Model(inputs, each(inputs, reverse=True), dtype="mixed_bfloat16")
        assert keras.backend.standardize_dtype(model(np.ones((2, 3, 4))).dtype) == dtype


def test_an_embedding_reversed_gives_each_tokens_product_with_the_table():
    layer = ReversibleEmbedding(7, 4)
    layer.build()
    table, x = RNG.normal(size=(7, 4)), RNG.normal(size=(2, 3, 4))
    layer.set_weights([table])
    logits = ops.convert_to_numpy(layer(x, reverse=True))
    np.testing.assert_allclose(logits, np.einsum("btd,vd->btv", x, table), rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(np.array([[6, 0]]))), table[[[6, 0]]], rtol=1e-6)


def test_the_number_of_rows_and_columns_may_be_unknown():
    inputs = keras.Input((None, 4))
    layer = Dense(6)
    model = keras.Model(inputs, layer(inputs))
    assert model.output_shape == (None, None, 6)
    assert model(np.ones((2, 5, 4))).shape == (2, 5, 6)


@pytest.mark.parametrize("name", layers.__all__)
def test_a_subclass_that_passes_its_arguments_on_has_those_of_the_layer(name):
    kind = getattr(layers, name)
    if not issubclass(kind, Layer):
        pytest.skip("keras-hub's")

    class Passing(kind):
        def call(self, *args, **kwargs):
            return super().call(*args, **kwargs)

    expected = dict(inspect.signature(kind.call).parameters)
    if kind is layers.ByLanguage:  # which passes other arguments on itself
        del expected["others"]
    assert expected.items() <= dict(inspect.signature(Passing.call).parameters).items()
