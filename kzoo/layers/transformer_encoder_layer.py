"""One layer of the Transformer's encoder."""

import keras
from keras import ops

from kzoo.layers.image_text_attention import ImageTextAttention
from kzoo.layers.transformer_layer import TransformerLayer


@keras.saving.register_keras_serializable("kzoo")
class TransformerEncoderLayer(TransformerLayer):
    """Self-attention and feed-forward network, each with a residual connection.

    With an image, image-text attention comes between them: the image's R regions attend to the tokens, and
    the mean over the regions is added to every token (Ma et al. 2020, Eq. 3).

    Args:
        num_heads: int. H; must divide D.
        feedforward_dim: int. Inner width of the feed-forward network.
        dropout: float. Rate on each sublayer's output. Defaults to `0`.
        norm: `"post"` or `"pre"`, where layer normalization is applied. Defaults to `"post"`.
        rotary: layer that encodes positions in queries and keys, such as `RoPEEmbedding`; see
            `MultiHeadAttention`. Defaults to `None`.
        activation: Keras's name of the feed-forward network's activation. Defaults to `"relu"`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, D)`.
        image: `(B, D_img)` or `(B, R, D_img)`, features of a picture, in every call or in none. None by
            default.
        mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default.
        training: bool. Whether dropout is on.
        inputs_mask: set by Keras instead of `mask` if there is an `image`; `mask` takes precedence.
        position_bias: `(H, S, S)`. Added to the scores of the self-attention. None by default.
        return_attention_scores: bool. Defaults to `False`.

    Returns:
        `(B, S, D)`; then, if requested, the image's attention to the tokens `(B, H, R, S)`, or `None`.

    Raises:
        ValueError: `num_heads` below 1, or not a divisor of D; an unknown `norm`; an image of another rank;
            an image in only some calls.

    Example:

    >>> tokens = keras.random.normal((2, 10, 64))
    >>> TransformerEncoderLayer(num_heads=4, feedforward_dim=128)(tokens).shape
    (2, 10, 64)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Section 3.1. https://arxiv.org/abs/1706.03762
        Ma et al. 2020, "Fusion of Image-text attention for Transformer-based Multimodal Machine Translation".
        https://doi.org/10.1109/IALP48816.2019.9037732
    """

    def build(self, inputs_shape, image_shape=None):
        self.attention = self.attention_layer("attention", inputs_shape[-1], self.rotary)
        self.attention_residual = self.residual("attention_residual")
        super().build(inputs_shape, self.attention, self.attention_residual)
        self.image_attention = None
        if image_shape is not None:
            self.image_attention = ImageTextAttention(
                self.num_heads, self.attention.key_dim, dtype=self.dtype_policy, name="image_attention"
            )
            self.image_attention.build(inputs_shape, image_shape)
            self.image_residual = self.residual("image_residual")
            self.image_residual.build(inputs_shape)

    def call(
        self,
        inputs,
        image=None,
        mask=None,
        training: bool | None = None,
        inputs_mask=None,
        position_bias=None,
        return_attention_scores: bool = False,
    ):
        if (image is None) != (self.image_attention is None):
            built, called = ("without", "with") if self.image_attention is None else ("with", "without")
            raise ValueError(
                f"{self.name} was built {built} an image and is called {called} one: give an image in every "
                "call or in none"
            )
        x, mask, scores = inputs, inputs_mask if mask is None else mask, None
        attended = self.attention(
            self.attention_residual.enter(x), query_mask=mask, position_bias=position_bias
        )
        x = self.attention_residual(x, attended, training=training)
        if self.image_attention is not None:
            shown, scores = self.image_attention(
                self.image_residual.enter(x), image, text_mask=mask, return_attention_scores=True
            )  # (B, R, D)
            shown = ops.broadcast_to(ops.mean(shown, axis=1, keepdims=True), ops.shape(x))
            x = self.image_residual(x, shown, training=training)
        x = self.feed_forward(x, training)
        return (x, scores) if return_attention_scores else x
