"""A whole Transformer encoder with Legendre positions, as one layer."""

import keras

from kzoo.layers.dense import Dense
from kzoo.layers.layer import Layer
from kzoo.layers.pope_embedding import PoPEEmbedding
from kzoo.layers.transformer_encoder_layer import TransformerEncoderLayer


@keras.saving.register_keras_serializable("kzoo")
class TransformerEncoder(Layer):
    """Legendre positions, then stacked pre-norm Transformer layers; without dropout.

    Interchangeable with `RecurrentEncoder` and `ConvolutionalEncoder`. A linear map first projects the inputs
    to width D.

    Args:
        width: int. D. Defaults to `512`.
        num_layers: int. Defaults to `2`.
        num_heads: int. Must divide `width`. Defaults to `8`.
        max_length: int. Maximum sentence length. Defaults to `256`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, E)`.
        mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default.

    Returns:
        `(B, S, D)`.

    Raises:
        ValueError: `num_heads` does not divide `width`; a sentence longer than `max_length`, if its length
            is known statically.

    Example:

    >>> tokens = keras.random.normal((2, 12, 64))
    >>> TransformerEncoder(width=32, num_heads=4)(tokens).shape
    (2, 12, 32)
    """

    def __init__(
        self, width: int = 512, num_layers: int = 2, num_heads: int = 8, max_length: int = 256, **kwargs
    ):
        super().__init__(**kwargs)
        self.width = width
        self.num_layers = num_layers
        self.num_heads = num_heads
        self.max_length = max_length

    def build(self, inputs_shape):
        dtype, shape = self.dtype_policy, (*inputs_shape[:-1], self.width)
        self.enter = Dense(self.width, dtype=dtype, name="enter")
        self.enter.build(inputs_shape)
        self.positions = PoPEEmbedding(self.max_length, normalize=True, dtype=dtype, name="positions")
        self.positions.build(shape)
        self.layers = [
            TransformerEncoderLayer(
                self.num_heads, 4 * self.width, norm="pre", dtype=dtype, name=f"layer_{i}"
            )
            for i in range(self.num_layers)
        ]
        self.norm = keras.layers.LayerNormalization(epsilon=1e-5, dtype=dtype, name="norm")
        for layer in (*self.layers, self.norm):
            layer.build(shape)

    def call(self, inputs, mask=None):
        x = self.enter(inputs)
        x = x + self.positions(x)
        for layer in self.layers:
            x = layer(x, mask=mask)
        return self.norm(x)

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.width)
