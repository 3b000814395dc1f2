"""The convolutional sentence encoder."""

import keras
from keras import ops

from kzoo.layers.dense import Dense, add_bias, on_rows
from kzoo.layers.layer import Layer


@keras.saving.register_keras_serializable("kzoo")
class ConvolutionalEncoder(Layer):
    """Stacked convolutions with gated linear units and residual connections over a sentence.

        x ← (x + (conv_a(x) ⊗ sigmoid(conv_b(x)))) · sqrt(1/2)

    Padding is set to zero before each convolution, so outputs do not depend on the amount of padding. A
    linear map first projects the inputs to width D.

    Args:
        width: int. D. Defaults to `512`.
        num_layers: int. Defaults to `2`.
        kernel_size: int. Number of tokens that a convolution sees. Defaults to `3`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, E)`.
        mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default.

    Returns:
        `(B, S, D)`.

    Example:

    >>> tokens = keras.random.normal((2, 12, 64))
    >>> ConvolutionalEncoder(width=32)(tokens).shape
    (2, 12, 32)

    Reference:
        Gehring et al. 2017, "Convolutional Sequence to Sequence Learning", Section 3.2.
        https://arxiv.org/abs/1705.03122
    """

    def __init__(self, width: int = 512, num_layers: int = 2, kernel_size: int = 3, **kwargs):
        super().__init__(**kwargs)
        self.width = width
        self.num_layers = num_layers
        self.kernel_size = kernel_size

    def build(self, inputs_shape):
        dtype = self.dtype_policy
        self.enter = Dense(self.width, dtype=dtype, name="enter")
        self.enter.build(inputs_shape)
        self.convolutions = [
            keras.layers.Conv1D(
                2 * self.width,
                self.kernel_size,
                padding="same",
                data_format="channels_last",
                dtype=dtype,
                name=f"convolution_{i}",
            )
            for i in range(self.num_layers)
        ]
        for convolution in self.convolutions:
            convolution.build((*inputs_shape[:-1], self.width))

    def call(self, inputs, mask=None):
        x = self.enter(inputs)
        real = 1.0 if mask is None else ops.cast(mask, x.dtype)[..., None]  # (B, S, 1)
        for convolution in self.convolutions:
            x = x * real
            mixed = ops.conv(x, convolution.kernel, padding="same", data_format="channels_last")
            mixed = on_rows(lambda rows, bias=convolution.bias: add_bias(rows, bias), mixed)
            values, gates = ops.split(mixed, 2, axis=-1)
            x = (x + values * ops.sigmoid(gates)) * 0.5**0.5
        return x

    def compute_output_shape(self, inputs_shape):
        return (*inputs_shape[:-1], self.width)
