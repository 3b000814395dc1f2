"""The glyph encoder: a character's vector computed from its bitmap, in five architectures."""

import keras
from keras import ops
from keras.layers import Dense

from kzoo.layers.composite_layer import CompositeLayer
from kzoo.layers.glyph_architectures import ARCHITECTURES
from kzoo.layers.glyph_convolutions import SIZE, GlyphConvolutions
from kzoo.layers.weighted_moments import move_towards, normalized, weighted_moments


@keras.saving.register_keras_serializable("kzoo")
class GlyphCharEncoder(CompositeLayer):
    """Character vectors from 22×22 bitmaps.

        cnn_fc_relu     ReLU(FC(norm(CNN(glyph))))
        cnn_softmax_fc  FC(softmax(norm(CNN(glyph))))
        cnn_relu        ReLU(norm(CNN(glyph)))
        fc_1            norm(FC(glyph))
        fc_2            FC(ReLU(norm(FC(glyph))))

    The CNN (Table 2) is conv 3×3×32, ReLU, max-pool 2, conv 3×3×32, ReLU, max-pool 2, conv 4×4×F, without
    padding: 22 → 20 → 10 → 8 → 4 → 1. `norm` is batch normalization of the F features.

    Choices that the paper leaves open: batch normalization is applied once, to the F features; `fc_1` and
    `fc_2` end without a nonlinearity; `fc_2` has the F of `cnn_fc_relu`.

    Args:
        output_dim: int. D. Defaults to `512`.
        architecture: a key of `ARCHITECTURES`. Defaults to `"cnn_fc_relu"`.
        num_features: int. F; by default 1,024, and 4,096 for `cnn_softmax_fc`. `cnn_relu` and `fc_1` have
            F = D.
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
        self.supports_masking = True
        if architecture not in ARCHITECTURES:
            raise ValueError(f"architecture is one of {tuple(ARCHITECTURES)}, not {architecture!r}")
        chosen = ARCHITECTURES[architecture]
        if chosen.num_features is None and num_features not in (None, output_dim):
            raise ValueError(f"{architecture} has F = D = {output_dim}, not F = {num_features}")
        self.output_dim = output_dim
        self.architecture = architecture
        self.num_features = num_features or chosen.num_features or output_dim
        self._inner_activation = keras.activations.get(chosen.inner_activation)

        inside = {"dtype": self.dtype_policy}
        self.convolutions = GlyphConvolutions(**inside, name="cnn") if chosen.convolutions else None
        # A 4×4 convolution of a 4×4 image is a fully connected layer, and faster as one.
        self.features_map = Dense(self.num_features, **inside, name="features")
        self.output_map = chosen.output_map(output_dim, **inside)

    def build(self, glyphs_shape):
        shape = (None, SIZE * SIZE)
        if self.convolutions is not None:
            self.convolutions.build((None, SIZE, SIZE))
            shape = self.convolutions.compute_output_shape((None,))
        self.features_map.build(shape)
        if self.output_map is not None:
            self.output_map.build((None, self.num_features))
        F = (self.num_features,)
        single = {"dtype": "float32", "autocast": False}
        self.gamma = self.add_weight(F, "ones", **single, name="gamma")
        self.beta = self.add_weight(F, "zeros", **single, name="beta")
        stored = {**single, "trainable": False}
        self.moving_mean = self.add_weight(F, "zeros", **stored, name="moving_mean")
        self.moving_variance = self.add_weight(F, "ones", **stored, name="moving_variance")

    def call(self, glyphs, training: bool | None = None, mask=None):
        if tuple(glyphs.shape[-2:]) != (SIZE, SIZE):
            raise ValueError(f"glyphs are {SIZE}×{SIZE} pixels, these have the shape {tuple(glyphs.shape)}")
        shape = ops.shape(glyphs)[:-2]
        glyphs = ops.reshape(glyphs, (-1, SIZE, SIZE))
        counts = ops.ones_like(glyphs[:, 0, 0], dtype="int32") if mask is None else ops.reshape(mask, (-1,))
        vectors, moments = self.vectors(self.features(glyphs), counts if self.learns(training) else None)
        if self.learns(training):
            self.update_moments(moments)
        return ops.reshape(vectors, (*shape, self.output_dim))

    def learns(self, training) -> bool:
        """Return whether a call with this `training` uses the batch's statistics and updates the stored."""
        return bool(training) and self.trainable

    def features(self, glyphs):
        """Return the features before normalization, float32 `(N, F)`, of `glyphs` `(N, 22, 22)`."""
        pixels = ops.cast(ops.reshape(glyphs, (-1, SIZE * SIZE)), self.compute_dtype)
        inputs = pixels if self.convolutions is None else self.convolutions(glyphs)
        return ops.cast(self.features_map(inputs), "float32")

    def vectors(self, features, counts=None):
        """Return the vectors `(N, D)` of `features` `(N, F)`, and the moments used; nothing is stored.

        With `counts` the moments are those of the batch, where row n counts `counts[n]` times; without, the
        stored ones.
        """
        moments = self.moving_mean, self.moving_variance
        if counts is not None:
            moments = weighted_moments(features, counts)
        features = self._activate(features, moments)
        return (features if self.output_map is None else self.output_map(features)), moments

    def activations(self, glyphs):
        """Return the features `(N, F)` of `glyphs` `(N, 22, 22)` after their nonlinearity, as in Figure 1."""
        return self._activate(self.features(glyphs), (self.moving_mean, self.moving_variance))

    def update_moments(self, moments):
        """Move the stored moments towards those of a batch."""
        move_towards((self.moving_mean, self.moving_variance), moments, momentum=0.99)

    def _activate(self, features, moments):
        normal = normalized(features, moments, self.gamma, self.beta)
        return ops.cast(self._inner_activation(normal), self.compute_dtype)

    def compute_output_shape(self, glyphs_shape):
        return (*glyphs_shape[:-2], self.output_dim)

    def get_config(self):
        config = {
            "output_dim": self.output_dim,
            "architecture": self.architecture,
            "num_features": self.num_features,
        }
        return {**super().get_config(), **config}
