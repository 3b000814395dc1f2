"""One layer of the Transformer's decoder."""

import keras
from keras import ops

from kzoo.layers.transformer_layer import TransformerLayer


@keras.saving.register_keras_serializable("kzoo")
class TransformerDecoderLayer(TransformerLayer):
    """Causal self-attention, cross-attention and feed-forward network, each with a residual connection.

    Call the layer on a whole target, as in training, or `decode_step` on the newest token of each hypothesis.

    Args:
        num_heads: int. H; must divide D.
        feedforward_dim: int. Inner width of the feed-forward network.
        dropout: float. Rate on each sublayer's output. Defaults to `0`.
        norm: `"post"` or `"pre"`, where layer normalization is applied. Defaults to `"post"`.
        rotary: layer that encodes positions in the self-attention's queries and keys; see
            `MultiHeadAttention`. Defaults to `None`.
        activation: Keras's name of the feed-forward network's activation. Defaults to `"relu"`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, T, D)`.
        source: `(B, S, D)`. The encoder's output.
        source_mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default.
        training: bool. Whether dropout is on.
        inputs_mask: bool `(B, T)`. `True` at target tokens. Needed only for left padding: causal attention
            never sees padding on the right.
        position_bias: `(H, T, T)`. Added to the scores of the self-attention. None by default.
        return_attention_scores: bool. Defaults to `False`.

    Returns:
        `(B, T, D)`; then the attention to the source `(B, H, T, S)` if requested.

    Raises:
        ValueError: `num_heads` does not divide D; an unknown `norm`.

    Example:

    >>> source, target = keras.random.normal((2, 10, 64)), keras.random.normal((2, 7, 64))
    >>> TransformerDecoderLayer(num_heads=4, feedforward_dim=128)(target, source).shape
    (2, 7, 64)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Section 3.1. https://arxiv.org/abs/1706.03762
    """

    def build(self, inputs_shape, source_shape=None):
        self.self_attention = self.attention_layer("self_attention", inputs_shape[-1], self.rotary)
        self.self_attention_residual = self.residual("self_attention_residual")
        self.cross_attention = self.attention_layer("cross_attention", inputs_shape[-1])
        self.cross_attention_residual = self.residual("cross_attention_residual")
        super().build(
            inputs_shape,
            self.self_attention,
            self.self_attention_residual,
            self.cross_attention,
            self.cross_attention_residual,
        )

    def call(
        self,
        inputs,
        source,
        source_mask=None,
        training: bool | None = None,
        inputs_mask=None,
        position_bias=None,
        return_attention_scores: bool = False,
    ):
        attended = self.self_attention(
            self.self_attention_residual.enter(inputs),
            use_causal_mask=True,
            position_bias=position_bias,
            query_mask=inputs_mask,
        )
        x = self.self_attention_residual(inputs, attended, training=training)
        return self._read_source(x, source_mask, return_attention_scores, value=source, training=training)

    def decode_step(
        self,
        inputs,
        source_cache,
        source_mask,
        cache,
        cache_index,
        mask,
        positions,
        position_bias=None,
    ) -> tuple:
        """Process the newest token of each of `K` hypotheses.

        Args:
            inputs: `(B, K, D)`.
            source_cache: keys `(B, H, d, S)` and values `(B, H, S, d)`: `source_cache(source)`.
            source_mask: bool `(B, S)`.
            cache: keys `(B, H, d, N)` and values `(B, H, N, d)` of earlier tokens of all hypotheses.
            cache_index: int32 scalar. The first of the `K` entries where these tokens are written.
            mask: bool `(B, 1, K, N)`. `True` at each hypothesis's ancestors and at its own entry.
            positions: int32 `(K,)`. Positions of the tokens in their hypotheses.
            position_bias: `(H, K, N)`. Added to the scores of the self-attention.

        Returns:
            `(B, K, D)` and the cache with the tokens' entries written.
        """
        attended, cache = self.self_attention(
            self.self_attention_residual.enter(inputs),
            attention_mask=mask,
            position_bias=position_bias,
            cache=cache,
            cache_index=cache_index,
            positions=positions,
        )
        x = self.self_attention_residual(inputs, attended)
        return self._read_source(x, source_mask, cache=source_cache), cache

    def source_cache(self, source) -> tuple:
        """Return the source's keys `(B, H, d, S)` and values `(B, H, S, d)`, computed once per sentence."""
        cache = self.cross_attention.keys_and_values(source)
        return tuple(ops.cast(part, self.compute_dtype) for part in cache)  # Keras casts only inside `call`

    def _read_source(
        self, x, source_mask, return_attention_scores: bool = False, training: bool | None = None, **source
    ):
        """Apply cross-attention and the feed-forward network; return what `call` returns."""
        attended = self.cross_attention(
            self.cross_attention_residual.enter(x),
            value_mask=source_mask,
            return_attention_scores=return_attention_scores,
            **source,
        )
        attended, *scores = attended if return_attention_scores else (attended,)
        x = self.feed_forward(self.cross_attention_residual(x, attended, training=training), training)
        return (x, *scores) if return_attention_scores else x
