"""The position-wise feed-forward sublayer."""

import keras

from kzoo.layers.composite_layer import CompositeLayer


@keras.saving.register_keras_serializable("kzoo")
class FeedForward(CompositeLayer):
    """Position-wise feed-forward network: f(x W₁ + b₁) W₂ + b₂.

    Args:
        inner_dim: int. Width between the two maps.
        activation: name of f, as Keras knows it. Defaults to `"relu"`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, L, D)`.

    Returns:
        `(B, L, D)`.

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Eq. 2. https://arxiv.org/abs/1706.03762
    """

    def __init__(self, inner_dim: int, activation: str = "relu", **kwargs):
        super().__init__(**kwargs)
        self.inner_dim = inner_dim
        self.activation = activation
        self.supports_masking = True

    def build(self, inputs_shape):
        self.inner = keras.layers.Dense(
            self.inner_dim, activation=self.activation, dtype=self.dtype_policy, name="inner"
        )
        self.outer = keras.layers.Dense(inputs_shape[-1], dtype=self.dtype_policy, name="outer")
        self.inner.build(inputs_shape)
        self.outer.build((*inputs_shape[:-1], self.inner_dim))

    def call(self, inputs):
        return self.outer(self.inner(inputs))

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "inner_dim": self.inner_dim, "activation": self.activation}
