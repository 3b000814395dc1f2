"""The glyph paper's five architectures from a character's bitmap to its vector, for `GlyphCharEncoder`."""

from typing import NamedTuple

import keras
from keras.initializers import RandomNormal
from keras.layers import Dense


class Architecture(NamedTuple):
    """The layers between pixels and vector.

    Args:
        convolutions: bool. `True`: the features are computed by the CNN; `False`: from the pixels directly.
        num_features: int. Default of F; `None`: F is always the vector's width.
        inner_activation: activation of the features.
        output_activation: activation of the map from features to vector; `None`: the features are the vector.
    """

    convolutions: bool
    num_features: int | None
    inner_activation: str
    output_activation: str | None

    def output_map(self, output_dim: int, dtype: keras.DTypePolicy) -> Dense | None:
        """Return the fully connected layer from features to vector, or `None`."""
        if self.output_activation is None:
            return None
        # A softmax mixes thousands of rows: standard deviation 1 gives vectors the size of looked-up ones.
        initial = RandomNormal(stddev=1.0) if self.inner_activation == "softmax" else "glorot_uniform"
        return Dense(
            output_dim, self.output_activation, kernel_initializer=initial, dtype=dtype, name="output"
        )


# Broscheit et al. 2018, Table 1, with the paper's choice of the number of features.
ARCHITECTURES = {
    "cnn_fc_relu": Architecture(True, 1024, "linear", "relu"),
    "cnn_softmax_fc": Architecture(True, 4096, "softmax", "linear"),
    "cnn_relu": Architecture(True, None, "relu", None),
    "fc_1": Architecture(False, None, "linear", None),
    "fc_2": Architecture(False, 1024, "relu", "linear"),
}
