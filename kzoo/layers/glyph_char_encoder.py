"""The glyph encoder, which computes a character's vector from its bitmap, and its architectures."""

from typing import NamedTuple

import keras
from keras import ops
from keras.initializers import RandomNormal

from kzoo.layers.dense import Dense, add_bias, on_rows
from kzoo.layers.layer import Layer
from kzoo.layers.normalization import Normalization, weighted_moments

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

    convolutions: bool  # whether the features come from the CNN or directly from the pixels
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
}


@keras.saving.register_keras_serializable("kzoo")
class GlyphCharEncoder(Layer):
    """Character vectors from 22×22 bitmaps.

        cnn_fc_relu     ReLU(BN(FC(ReLU(BN(CNN(glyph))))))
        cnn_softmax_fc  FC(softmax(CNN(glyph)))
        cnn_relu        ReLU(BN(CNN(glyph)))
        fc_1            FC(glyph)
        fc_2            FC(ReLU(BN(FC(glyph))))

    The CNN (Table 2) is conv 3×3×32, ReLU, max-pool 2, conv 3×3×32, ReLU, max-pool 2, conv 4×4×F, without
    padding: 22 → 20 → 10 → 8 → 4 → 1. BN is batch normalization, of the F features or of the D outputs.

    The paper leaves some details open. Here all maps have biases. Batch normalization has ε = 0.001, as in
    Keras, and keeps 0.9 of its stored statistics at each step, as in PyTorch.

    Args:
        output_dim: int. D. Defaults to `512`.
        architecture: a key of `ARCHITECTURES`. Defaults to `"cnn_fc_relu"`.
        num_features: int. F. Defaults to 1,024; to 4,096 for `cnn_softmax_fc` and 512 for `fc_2`. For
            `cnn_relu` and `fc_1`, F = D.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        glyphs: `(…, 22, 22)`. 1 where there is ink, 0 elsewhere.
        training: bool. Whether to normalize by the batch's statistics and update the stored ones.
        mask: `(…)`. `False` at padding, which the statistics ignore.

    Returns:
        `(…, D)`.

    Raises:
        ValueError: an unknown architecture, an F that it does not allow, or glyphs of another size.

    Example:

    >>> glyphs = np.zeros((2, 7, 22, 22))
    >>> GlyphCharEncoder(output_dim=64, architecture="cnn_relu")(glyphs).shape
    (2, 7, 64)

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features", Tables 1
        and 2. https://aclanthology.org/W18-3025
    """

    def __init__(
        self,
        output_dim: int = 512,
        architecture: str = "cnn_fc_relu",
        num_features: int | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if architecture not in ARCHITECTURES:
            raise ValueError(f"architecture must be one of {tuple(ARCHITECTURES)}, not {architecture!r}")
        chosen = ARCHITECTURES[architecture]
        if chosen.num_features is None and num_features not in (None, output_dim):
            raise ValueError(f"{architecture} needs num_features={output_dim}, not {num_features}")
        self.output_dim = output_dim
        self.architecture = architecture
        self.num_features = num_features or chosen.num_features or output_dim
        self._after_features, self._after_output = chosen.features, chosen.output

        inside = {"dtype": self.dtype_policy}
        self.convolutions = GlyphConvolutions(**inside, name="cnn") if chosen.convolutions else None
        # A 4×4 convolution of a 4×4 image is a fully connected layer, and faster as one.
        self.features_map = Dense(self.num_features, **inside, name="features")
        self.output_map = None
        if chosen.output is not None:
            # The softmax mixes this matrix's rows, so they start at the scale of an embedding table's.
            lookup = chosen.features.activation == "softmax"
            initial = RandomNormal(stddev=1.0) if lookup else "glorot_uniform"
            self.output_map = Dense(output_dim, kernel_initializer=initial, **inside, name="output")

    def build(self, glyphs_shape):
        shape = (None, SIZE * SIZE)
        if self.convolutions is not None:
            self.convolutions.build((None, SIZE, SIZE))
            shape = self.convolutions.compute_output_shape((None,))
        self.features_map.build(shape)
        if self.output_map is not None:
            self.output_map.build((None, self.num_features))
        features, output = self._after_features, self._after_output
        self.features_norm = Normalization.of(self, self.num_features) if features.normalized else None
        self.output_norm = None
        if output is not None and output.normalized:
            self.output_norm = Normalization.of(self, self.output_dim, "output_")

    def call(self, glyphs, training: bool | None = None, mask=None):
        if tuple(glyphs.shape[-2:]) != (SIZE, SIZE):
            raise ValueError(f"glyphs must have {SIZE}×{SIZE} pixels, not the shape {tuple(glyphs.shape)}")
        shape = ops.shape(glyphs)[:-2]
        glyphs = ops.reshape(glyphs, (-1, SIZE, SIZE))
        counts = ops.ones_like(glyphs[:, 0, 0], dtype="int32") if mask is None else ops.reshape(mask, (-1,))
        vectors, moments = self.vectors(self.features(glyphs), counts if self.learns(training) else None)
        if self.learns(training):
            self.update_moments(moments)
        return ops.reshape(vectors, (*shape, self.output_dim))

    def learns(self, training) -> bool:
        """Return whether a call uses the batch's statistics and updates the stored ones."""
        return bool(training) and self.trainable

    def features(self, glyphs):
        """Return the features before normalization, float32 `(N, F)`, of `glyphs` `(N, 22, 22)`."""
        pixels = ops.cast(ops.reshape(glyphs, (-1, SIZE * SIZE)), self.compute_dtype)
        inputs = pixels if self.convolutions is None else self.convolutions(glyphs)
        return ops.cast(self.features_map(inputs), "float32")

    def vectors(self, features, counts=None):
        """Return the vectors `(N, D)` of `features` `(N, F)`, and the moments used, without storing them.

        With `counts`, normalize by the batch's moments, counting row n `counts[n]` times. Without, normalize
        by the stored moments.
        """
        x, of_features = self._apply(self._after_features, self.features_norm, features, counts)
        if self.output_map is None:
            return x, (of_features, None)
        x, of_output = self._apply(self._after_output, self.output_norm, self.output_map(x), counts)
        return x, (of_features, of_output)

    def activations(self, glyphs):
        """Return the features `(N, F)` of `glyphs` `(N, 22, 22)` after their nonlinearity, as in Figure 1."""
        return self._apply(self._after_features, self.features_norm, self.features(glyphs))[0]

    def update_moments(self, moments):
        """Move the stored moments towards those of a batch, as `vectors` returned them."""
        for norm, of_batch in zip((self.features_norm, self.output_norm), moments, strict=True):
            if norm is not None:
                # PyTorch's default; with Keras's, 0.99, they lag behind the weights in the first epoch.
                norm.move_towards(of_batch, momentum=0.9)

    def _apply(self, after, norm, x, counts=None):
        """Return `x` `(N, F)`, normalized if there is a `norm` and then activated, and the moments used."""
        moments = None
        if norm is not None:
            x = ops.cast(x, "float32")
            moments = norm.stored if counts is None else weighted_moments(x, counts)
            x = norm.normalize(x, moments)
        return ops.cast(keras.activations.get(after.activation)(x), self.compute_dtype), moments

    def compute_output_shape(self, glyphs_shape):
        return (*glyphs_shape[:-2], self.output_dim)


@keras.saving.register_keras_serializable("kzoo")
class GlyphConvolutions(Layer):
    """The glyph paper's CNN without its last convolution: 22 → 20 → 10 → 8 → 4.

    Twice conv 3×3×32, ReLU and max-pool 2, without padding. The last convolution, 4×4×F, is a fully connected
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
            x = ops.conv(x, kernel, padding="valid", data_format="channels_last")
            x = ops.relu(on_rows(lambda pixels, bias=bias: add_bias(pixels, bias), x))
            x = ops.max_pool(x, 2, strides=2, data_format="channels_last")
        return ops.reshape(x, self.compute_output_shape((-1,)))

    def compute_mask(self, glyphs, mask=None):
        return None  # the mask does not fit the features' axes

    def compute_output_shape(self, glyphs_shape):
        return (glyphs_shape[0], 4 * 4 * CHANNELS)
