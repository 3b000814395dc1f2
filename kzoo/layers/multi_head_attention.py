"""Multi-head attention with rotary positions and a key/value cache."""

import keras
from keras import ops

from kzoo.layers.dropout import Dropout


@keras.saving.register_keras_serializable("kzoo")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention.

        softmax(Q Kᵀ / sqrt(d) + mask) V   in each of H heads, concatenated and projected

    One kernel `(D, 3·H·d)` holds the query, key and value maps, so that self-attention is one product.

    A cache is the pair of keys `(B, H, d, N)`, rotated, and values `(B, H, N, d)` of earlier tokens; the
    keys lie as their product with a few queries reads them, 0.95 of a beam search's time. Without
    `cache_index` it is read as it is (the source, in cross-attention); with it the inputs' own keys and
    values are first written at entries `cache_index … cache_index + L - 1`. What the entries mean is up to
    the mask: a beam search lets N be steps × beams and masks all but a hypothesis's ancestors.

    Args:
        num_heads: int. H.
        key_dim: int. d, the width of a head.
        dropout: float. Rate on the attention weights. Defaults to `0`.
        rotary: layer called as `rotary(x (B, H, L, d), positions=…)` on queries and keys, such as
            `RoPEEmbedding`. Defaults to `None`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        query: `(B, L, D)`.
        value: `(B, N, D)`. What is attended to; the query itself by default.
        attention_mask: bool, broadcast to `(B, H, L, N)`. `True` where a query may look.
        cache: `(keys (B, H, d, N), values (B, H, N, d))`.
        cache_index: int or integer tensor. First entry of the cache to write.
        positions: `(L,)` or `(B, L)`. The query's positions for `rotary`; 0 … L - 1 by default. Keys of a
            `value` stand at 0 … N - 1.
        return_attention_scores: bool. Defaults to `False`.
        training: bool. Whether dropout is on.

    Returns:
        `(B, L, D)`; then `(B, H, L, N)` weights if they are asked for; then the cache if it was written.

    Example:

    >>> x = keras.random.normal((2, 10, 64))
    >>> MultiHeadAttention(num_heads=4, key_dim=16)(x).shape
    (2, 10, 64)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Section 3.2. https://arxiv.org/abs/1706.03762
    """

    def __init__(self, num_heads: int, key_dim: int, dropout: float = 0.0, rotary=None, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.rotary = rotary
        self.supports_masking = True
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, query_shape, value_shape=None):
        width, inner = query_shape[-1], self.num_heads * self.key_dim
        # Glorot's bound for the joint kernel is 1/sqrt(2) of a single map's: the gentler start that deep
        # post-norm stacks need.
        self.kernel = self.add_weight(
            (width, 3 * inner), name="kernel", initializer=keras.initializers.GlorotUniform()
        )
        self.bias = self.add_weight((3 * inner,), name="bias", initializer="zeros")
        self.output_dense = keras.layers.Dense(width, dtype=self.dtype_policy, name="output")
        self.output_dense.build((*query_shape[:-1], inner))

    def call(
        self,
        query,
        value=None,
        attention_mask=None,
        cache=None,
        cache_index=None,
        positions=None,
        return_attention_scores=False,
        training=None,
    ):
        if cache is not None and cache_index is None:
            (q,) = self._project(query, first=0, count=1)
            keys, values = cache
        elif value is not None:
            (q,) = self._project(query, first=0, count=1)
            keys, values = self.keys_and_values(value)
        else:
            q, keys, values = self._project(query, first=0, count=3)
            keys = ops.swapaxes(self._rotate(keys, positions), -1, -2)
        q = self._rotate(q, positions)
        if cache_index is not None:
            keys = ops.slice_update(cache[0], (0, 0, 0, cache_index), ops.cast(keys, cache[0].dtype))
            values = ops.slice_update(cache[1], (0, 0, cache_index, 0), ops.cast(values, cache[1].dtype))

        scores = ops.matmul(q, keys) * self.key_dim**-0.5  # (B, H, L, N)
        weights = self._softmax(scores, attention_mask)
        mixed = ops.einsum("bhln,bhnd->blhd", self._dropout(weights, training=training), values)
        outputs = [self.output_dense(ops.reshape(mixed, (*ops.shape(query)[:2], -1)))]
        if return_attention_scores:
            outputs.append(weights)
        if cache_index is not None:
            outputs.append((keys, values))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def keys_and_values(self, value):
        """Return keys `(B, H, d, N)` and values `(B, H, N, d)` of `value` `(B, N, D)`, ready as a cache."""
        keys, values = self._project(value, first=1, count=2)
        return ops.swapaxes(self._rotate(keys), -1, -2), values

    def _project(self, x, first: int, count: int):
        """Apply `count` of the query, key and value maps from number `first` on: `(B, H, L, d)` each."""
        inner = self.num_heads * self.key_dim
        columns = slice(first * inner, (first + count) * inner)
        x = ops.matmul(x, self.kernel[:, columns]) + self.bias[columns]
        # Split before the heads are: 0.95 of a training step's time for taking parts of one big transpose.
        shape = (*ops.shape(x)[:2], self.num_heads, self.key_dim)
        return [
            ops.transpose(ops.reshape(part, shape), (0, 2, 1, 3)) for part in ops.split(x, count, axis=-1)
        ]

    def _rotate(self, x, positions=None):
        return x if self.rotary is None else self.rotary(x, positions=positions)

    def _softmax(self, scores, mask):
        """Softmax over N in float32; masked entries get weight 0."""
        dtype = scores.dtype
        scores = ops.cast(scores, "float32")
        if mask is not None:
            scores = ops.where(mask, scores, -1e9)
        return ops.cast(ops.softmax(scores, axis=-1), dtype)

    def compute_output_shape(self, query_shape, value_shape=None):
        return query_shape

    def get_config(self):
        config = {
            "num_heads": self.num_heads,
            "key_dim": self.key_dim,
            "dropout": self.dropout,
            "rotary": keras.saving.serialize_keras_object(self.rotary),
        }
        return {**super().get_config(), **config}

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        config["rotary"] = keras.saving.deserialize_keras_object(config["rotary"])
        return cls(**config)
