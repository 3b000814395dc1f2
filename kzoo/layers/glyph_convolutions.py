"""The glyph encoder's convolutions, from a bitmap to 512 numbers."""

import keras
from keras import ops

SIZE = 22  # the only size that the paper's convolutions reduce to a single pixel
CHANNELS = 32


@keras.saving.register_keras_serializable("kzoo")
class GlyphConvolutions(keras.layers.Layer):
    """The glyph paper's CNN without its last convolution: 22 → 20 → 10 → 8 → 4.

    Conv 3×3×32, ReLU, max-pool 2, twice, without padding. The last convolution, 4×4×F, is a fully connected
    layer in `GlyphCharEncoder`.

    Args:
        **kwargs: arguments of `keras.layers.Layer`.

    Call arguments:
        glyphs: `(N, 22, 22)`.

    Returns:
        `(N, 512)`: 4×4 pixels of 32 channels.

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features", Table 2.
        https://aclanthology.org/W18-3025
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

    def compute_output_shape(self, glyphs_shape):
        return (glyphs_shape[0], 4 * 4 * CHANNELS)
