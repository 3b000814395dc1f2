"""The convolutional encoder against NumPy written from its equation, a sentence at a time."""

import keras
import numpy as np
from check_layer import assert_ignores_padding, check_layer
from keras import ops
from test_recurrent_encoder import MASK, sigmoid

from kzoo.layers import ConvolutionalEncoder


def encoded(x, weights, width):
    """Return the words of one sentence: `(n, E)` to `(n, width)` (Gehring et al. 2017, Section 3.2)."""
    enter, enter_bias, *convolutions = weights
    x = x @ enter + enter_bias
    for kernel, bias in zip(convolutions[::2], convolutions[1::2], strict=True):
        around = len(kernel) // 2
        padded = np.pad(x, ((around, around), (0, 0)))
        windows = np.stack([padded[t : t + len(kernel)] for t in range(len(x))])
        mapped = np.einsum("tkd,kde->te", windows, kernel) + bias
        x = (x + mapped[:, :width] * sigmoid(mapped[:, width:])) * np.sqrt(0.5)
    return x


def test_equals_the_equation(random):
    """Each sentence on its own, without its padding."""
    x = random.normal(size=(2, 5, 4)).astype("float32")
    for kernel_size in (3, 5):
        layer = ConvolutionalEncoder(width=6, num_layers=3, kernel_size=kernel_size)
        layer(x)
        layer.set_weights([random.normal(size=w.shape) * 0.5 for w in layer.get_weights()])
        found = ops.convert_to_numpy(layer(x, mask=MASK))
        for sentence, mask, words in zip(x, MASK, found, strict=True):
            expected = encoded(sentence[mask], layer.get_weights(), 6)
            np.testing.assert_allclose(words[mask], expected, atol=1e-4)
        assert_ignores_padding(lambda x, m, layer=layer: layer(x, mask=m), x, MASK, outputs_masked=True)


def test_keras_s_format_of_images_changes_nothing():
    keras.config.set_image_data_format("channels_first")
    try:
        assert ConvolutionalEncoder(8)(np.zeros((2, 5, 6), "float32")).shape == (2, 5, 8)
    finally:
        keras.config.set_image_data_format("channels_last")


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    check_layer(ConvolutionalEncoder(width=6), {"inputs": x, "mask": MASK}, tmp_path)
