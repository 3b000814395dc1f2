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


@pytest.mark.parametrize("training", [False, True])
def test_is_a_stack_of_normalized_strided_correlations(training, random):
    pictures = random.integers(0, 256, size=(2, 8, 12, 3)).astype("uint8")
    layer = PictureEncoder(channels=(4, 5))
    result = ops.convert_to_numpy(layer(pictures, training=training))
    x = pictures / 127.5 - 1
    for convolution in layer.convolutions:
        kernel = ops.convert_to_numpy(convolution.kernel)
        padded = np.pad(x, ((0, 0), (0, 1), (0, 1), (0, 0)))  # an even size is padded at its end
        maps = [
            [
                sum(correlate(picture[..., i], kernel[..., i, o], "valid") for i in range(x.shape[-1]))
                for o in range(kernel.shape[-1])
            ]
            for picture in padded
        ]
        x = np.moveaxis(np.array(maps), 1, -1)[:, ::2, ::2]
        mean, variance = (x.mean((0, 1, 2)), x.var((0, 1, 2))) if training else (0, 1)
        x = np.maximum((x - mean) / np.sqrt(variance + 1e-3), 0)
    np.testing.assert_allclose(result, x.reshape(2, -1, 5), atol=1e-4)
