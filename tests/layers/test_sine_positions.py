"""Sine positions against the formulas of Vaswani et al. and of fairseq."""

import keras
import numpy as np
import pytest
from check_layer import check_layer

from kzoo.layers import SinePositions
from kzoo.positions import sine_table


def encoding(length, width, **arguments):
    layer = SinePositions(**arguments)
    return keras.ops.convert_to_numpy(layer(np.zeros((1, length, width), "float32")))[0]


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(2, 5, 8)).astype("float32")
    check_layer(SinePositions(first_position=2), {"inputs": x}, tmp_path)


@pytest.mark.parametrize("width", [8, 64])
def test_equals_fairseq_s_but_for_the_order_of_features(width):
    half = width // 2
    rates = np.exp(-np.arange(half) * np.log(10_000) / (half - 1))
    angles = np.arange(2, 42)[:, None] * rates
    options = {"first_position": 2, "max_wavelength": 10_000 ** (half / (half - 1))}
    found = encoding(40, width, **options)
    np.testing.assert_allclose(found[:, 0::2], np.sin(angles), atol=1e-5)
    np.testing.assert_allclose(found[:, 1::2], np.cos(angles), atol=1e-5)
    np.testing.assert_allclose(sine_table(40, width, **options), found, atol=1e-5)


def test_chosen_positions_are_counted_from_the_first():
    whole = encoding(9, 16, first_position=3)
    chosen = SinePositions(first_position=3)(np.zeros((1, 2, 16), "float32"), positions=np.array([4, 1]))
    np.testing.assert_array_equal(keras.ops.convert_to_numpy(chosen)[0], whole[[4, 1]])
