"""The glyph paper's architectures from a character's bitmap to its vector, and their convolutions."""

from typing import NamedTuple

import keras
from keras import ops

from kzoo.layers.layer import Layer

SIZE = 22  # the only size that the paper's convolutions reduce to a single pixel
CHANNELS = 32


class Nonlinearity(NamedTuple):
    """What follows a linear map: batch normalization, if `normalized`, and then an activation."""

    normalized: bool
    activation: str


BN_RELU = Nonlinearity(True, "relu")
SOFTMAX = Nonlinearity(False, "softmax")
NOTHING = Nonlinearity(False, "linear")


class Architecture(NamedTuple):
    """The layers between pixels and vector."""

    convolutions: bool  # whether the features are computed by the CNN, or from the pixels directly
    num_features: int | None  # the default of F; `None`: F is always the vector's width
    features: Nonlinearity  # after the map to the features
    output: Nonlinearity | None = None  # after the map to the vector; `None`: the features are the vector


ARCHITECTURES = {
    # Broscheit et al. 2018, Table 1, with the number of features of Tables 5 to 7.
    "cnn_fc_relu": Architecture(True, 1024, BN_RELU, BN_RELU),
    "cnn_softmax_fc": Architecture(True, 4096, SOFTMAX, NOTHING),
    "cnn_relu": Architecture(True, None, BN_RELU),
    "fc_1": Architecture(False, None, NOTHING),
    "fc_2": Architecture(False, 512, BN_RELU, NOTHING),
    # Not in the paper: kept for models that were trained with them.
    "cnn_bn_fc_relu": Architecture(True, 1024, Nonlinearity(True, "linear"), Nonlinearity(False, "relu")),
    "cnn_bn_softmax_fc": Architecture(True, 4096, Nonlinearity(True, "softmax"), NOTHING),
    "fc_bn": Architecture(False, None, Nonlinearity(True, "linear")),
}

FORMAT = 2  # of the options in a configuration
NAMES_BEFORE = {"cnn_fc_relu": "cnn_bn_fc_relu", "cnn_softmax_fc": "cnn_bn_softmax_fc", "fc_1": "fc_bn"}


def read_options(saved: dict) -> dict:
    """Return the encoder's arguments for the options of a saved configuration, which may be an older one.

    Configurations without a `"format"` are older than the architectures of Table 1: three names meant other
    networks, and `fc_2` had 1,024 features by default.
    """
    options = dict(saved)
    if options.pop("format", None) is None:
        name = options.get("architecture", "cnn_fc_relu")
        options["architecture"] = NAMES_BEFORE.get(name, name)
        if name == "fc_2":
            options["num_features"] = options.get("num_features") or 1024
    return options


@keras.saving.register_keras_serializable("kzoo")
class GlyphConvolutions(Layer):
    """The glyph paper's CNN without its last convolution: 22 → 20 → 10 → 8 → 4.

    Conv 3×3×32, ReLU, max-pool 2, twice, without padding. The last convolution, 4×4×F, is a fully connected
    layer in `GlyphCharEncoder`. Glyphs `(N, 22, 22)` become `(N, 512)`: 4×4 pixels of 32 channels.
    """

    def build(self, glyphs_shape):
        self.kernels, self.biases = [], []
        for number, channels in enumerate((1, CHANNELS), 1):
            self.kernels.append(self.add_weight((3, 3, channels, CHANNELS), name=f"kernel_{number}"))
            self.biases.append(self.add_weight((CHANNELS,), initializer="zeros", name=f"bias_{number}"))

    def call(self, glyphs):
        x = ops.cast(glyphs, self.compute_dtype)[..., None]
        for kernel, bias in zip(self.kernels, self.biases, strict=True):
            x = ops.relu(ops.conv(x, kernel, padding="valid", data_format="channels_last") + bias)
            x = ops.max_pool(x, 2, strides=2, data_format="channels_last")
        return ops.reshape(x, self.compute_output_shape((-1,)))

    def compute_mask(self, glyphs, mask=None):
        return None  # features have other axes

    def compute_output_shape(self, glyphs_shape):
        return (glyphs_shape[0], 4 * 4 * CHANNELS)
