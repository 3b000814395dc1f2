"""The picture encoder against SciPy's correlation, and pictures that do not fit."""

import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from scipy.signal import correlate

from kzoo.layers import PictureEncoder


def test_behaves_as_a_layer(random, tmp_path):
    pictures = random.uniform(0, 255, size=(2, 8, 8, 3)).astype("float32")
    check_layer(PictureEncoder(channels=(4, 8)), {"pictures": pictures}, tmp_path)


def test_is_a_stack_of_strided_correlations(random):
    pictures = random.integers(0, 256, size=(2, 8, 12, 3)).astype("uint8")
    layer = PictureEncoder(channels=(4, 5))
    result = ops.convert_to_numpy(layer(pictures))
    expected = []
    for x in pictures / 127.5 - 1:
        for convolution in layer.convolutions:
            kernel, bias = (ops.convert_to_numpy(weight) for weight in convolution.weights)
            padded = np.pad(x, ((0, 1), (0, 1), (0, 0)))  # an even size is padded at its end
            maps = [
                sum(correlate(padded[..., i], kernel[..., i, o], "valid") for i in range(x.shape[2]))
                for o in range(kernel.shape[3])
            ]
            x = np.maximum(np.stack(maps, axis=-1)[::2, ::2] + bias, 0)
        expected.append(x.reshape(-1, 5))
    np.testing.assert_allclose(result, expected, atol=1e-4)


def test_refuses_sizes_that_cannot_be_halved():
    with pytest.raises(ValueError, match="12×10: both must be multiples of 4"):
        PictureEncoder(channels=(4, 8))(np.zeros((1, 12, 10, 3), "uint8"))
