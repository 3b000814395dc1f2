"""The glyph paper's five ways from a character's bitmap to its vector, which `GlyphCharEncoder` takes."""

from typing import NamedTuple

import keras
from keras.initializers import RandomNormal
from keras.layers import Dense


class Architecture(NamedTuple):
    """What stands between pixels and vector.

    Args:
        convolutions: bool. Whether the features are those of the CNN; of the pixels otherwise.
        num_features: int. F, by default; `None`: as many as the vector is wide, always.
        inner_activation: of the features.
        output_activation: of the map from features to vector; `None`: the features are the vector.
    """

    convolutions: bool
    num_features: int | None
    inner_activation: str
    output_activation: str | None

    def output_map(self, output_dim: int, dtype: keras.DTypePolicy) -> Dense | None:
        """Return the fully connected map from features to vector, if there is one."""
        if self.output_activation is None:
            return None
        # A softmax mixes thousands of rows: of deviation 1 they make vectors of a lookup's size.
        initial = RandomNormal(stddev=1.0) if self.inner_activation == "softmax" else "glorot_uniform"
        return Dense(
            output_dim, self.output_activation, kernel_initializer=initial, dtype=dtype, name="output"
        )


# Broscheit et al. 2018, Table 1, with the number of features that the paper chose.
ARCHITECTURES = {
    "cnn_fc_relu": Architecture(True, 1024, "linear", "relu"),
    "cnn_softmax_fc": Architecture(True, 4096, "softmax", "linear"),
    "cnn_relu": Architecture(True, None, "relu", None),
    "fc_1": Architecture(False, None, "linear", None),
    "fc_2": Architecture(False, 1024, "relu", "linear"),
}
