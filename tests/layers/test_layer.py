"""Keras's layers of a matrix, applied to the rows of tensors of any rank."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.layers.layer import Dense, ReversibleEmbedding

RNG = np.random.default_rng(1)


@pytest.mark.parametrize("shape", [(5, 4), (2, 3, 4), (2, 3, 5, 4), (0, 3, 4)])
def test_dense_multiplies_the_last_axis(shape):
    layer = Dense(6, "relu")
    layer.build(shape)
    x, kernel, bias = RNG.normal(size=shape), RNG.normal(size=(4, 6)), RNG.normal(size=6)
    layer.set_weights([kernel, bias])
    expected = np.maximum(np.einsum("...d,de->...e", x, kernel) + bias, 0)
    np.testing.assert_allclose(ops.convert_to_numpy(layer(x)), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16", "mixed_float16"])
def test_an_embedding_reversed_computes_in_the_layers_precision(dtype):
    layer = ReversibleEmbedding(7, 4, dtype=dtype)
    again = ReversibleEmbedding.from_config({**layer.get_config(), "dtype": "float32"})
    for each, computed in (layer, layer.compute_dtype), (again, "float32"):
        each.build()
        logits = each(ops.ones((2, 3, 4), each.compute_dtype), reverse=True)
        assert keras.backend.standardize_dtype(logits.dtype) == computed


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
