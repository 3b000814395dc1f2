"""Parts of the Transformer's encoder and decoder layers: settings, residual connection, feed-forward."""

import keras

from kzoo.layers.dense import Dense
from kzoo.layers.dropout import Dropout
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import MultiHeadAttention


@keras.saving.register_keras_serializable("kzoo")
class Residual(Layer):
    """Residual connection, dropout and layer normalization around a sublayer f.

        post-norm: LayerNorm(x + Dropout(f(x)))        (Vaswani et al. 2017, Section 5.4)
        pre-norm:  x + Dropout(f(LayerNorm(x)))        (Xiong et al. 2020, Figure 1b)

    The caller applies the sublayer, so its signature does not matter:

        x = residual(x, f(residual.enter(x)))

    Args:
        norm: `"post"` or `"pre"`.
        dropout: float. Rate on the sublayer's output.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, L, D)`. x.
        outputs: `(B, L, D)`. The sublayer's output for `enter(x)`.
        training: bool. Whether dropout is on.

    Returns:
        `(B, L, D)`.

    Raises:
        ValueError: an unknown `norm`.
    """

    def __init__(self, norm: str = "post", dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        check_norm(norm)
        self.norm = norm
        self.dropout = dropout
        self._pre = norm == "pre"
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=1e-5, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, inputs_shape, outputs_shape=None):
        self.layer_norm.build(inputs_shape)

    def enter(self, inputs):
        """Return the sublayer's input: `inputs` `(B, L, D)`, normalized if `norm` is `"pre"`."""
        return self.layer_norm(inputs) if self._pre else inputs

    def call(self, inputs, outputs, training: bool | None = None):
        outputs = inputs + self._dropout(outputs, training=training)
        return outputs if self._pre else self.layer_norm(outputs)


def check_norm(norm: str):
    """Raise `ValueError` for an unknown `norm`."""
    if norm not in ("pre", "post"):
        raise ValueError(f'norm must be "pre" or "post", not {norm!r}')


@keras.saving.register_keras_serializable("kzoo")
class FeedForward(Layer):
    """Position-wise feed-forward network: f(x W₁ + b₁) W₂ + b₂.

    Args:
        inner_dim: int. Width between the two maps.
        activation: Keras's name of f. Defaults to `"relu"`.
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

    def build(self, inputs_shape):
        self.inner = Dense(self.inner_dim, activation=self.activation, dtype=self.dtype_policy, name="inner")
        self.outer = Dense(inputs_shape[-1], dtype=self.dtype_policy, name="outer")
        self.inner.build(inputs_shape)
        self.outer.build((*inputs_shape[:-1], self.inner_dim))

    def call(self, inputs):
        return self.outer(self.inner(inputs))


class TransformerLayer(Layer):
    """Base class with the settings of `TransformerEncoderLayer` and `TransformerDecoderLayer`; see there."""

    def __init__(
        self,
        num_heads: int,
        feedforward_dim: int,
        dropout: float = 0.0,
        norm: str = "post",
        rotary: keras.layers.Layer | None = None,
        activation: str = "relu",
        **kwargs,
    ):
        super().__init__(**kwargs)
        check_norm(norm)
        if num_heads < 1:
            raise ValueError(f"num_heads must be at least 1, not {num_heads}")
        self.num_heads = num_heads
        self.feedforward_dim = feedforward_dim
        self.dropout = dropout
        self.norm = norm
        self.rotary = rotary
        self.activation = activation

    def build(self, inputs_shape, *attentions: Layer):
        """Build the given sublayers, then the feed-forward network."""
        self.feedforward = FeedForward(
            self.feedforward_dim, self.activation, dtype=self.dtype_policy, name="feedforward"
        )
        self.feedforward_residual = self.residual("feedforward_residual")
        for layer in (*attentions, self.feedforward, self.feedforward_residual):
            layer.build(inputs_shape)

    def attention_layer(self, name: str, width: int, rotary=None) -> MultiHeadAttention:
        """Return multi-head attention for inputs of width D, according to the settings.

        Raises:
            ValueError: H does not divide D.
        """
        d, rest = divmod(width, self.num_heads)
        if rest:
            raise ValueError(f"num_heads={self.num_heads} does not divide the width of the inputs, {width}")
        return MultiHeadAttention(self.num_heads, d, rotary=rotary, dtype=self.dtype_policy, name=name)

    def residual(self, name: str) -> Residual:
        """Return the residual connection of a sublayer, according to the settings."""
        return Residual(self.norm, self.dropout, dtype=self.dtype_policy, name=name)

    def feed_forward(self, x, training: bool | None = None):
        """Apply the feed-forward network to the attention's outputs; return the layer's outputs."""
        outputs = self.feedforward(self.feedforward_residual.enter(x))
        return self.feedforward_residual(x, outputs, training=training)
