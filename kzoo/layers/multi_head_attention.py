"""Multi-head attention with rotary positions and a key/value cache."""

import keras
from keras import ops


@keras.saving.register_keras_serializable("kzoo")
class MultiHeadAttention(keras.layers.Layer):
    """Multi-head scaled dot-product attention.

        softmax(Q Kᵀ / sqrt(d) + mask) V   in each of H heads, concatenated and projected

    One kernel `(D, 3·H·d)` holds the query, key and value maps, so that self-attention is one product.

    A cache is the pair of keys and values `(B, H, N, d)` of earlier tokens. Without `cache_index` it is
    read as it is (the source, in cross-attention); with it the inputs' own keys and values are first
    written at entries `cache_index … cache_index + L - 1`. What the entries mean is up to the mask: a beam
    search lets N be steps × beams and masks all but a hypothesis's ancestors.

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
        mask: bool, broadcast to `(B, H, L, N)`. `True` where a query may look.
        cache: `(keys, values)`, each `(B, H, N, d)`.
        cache_index: int or integer tensor. First entry of the cache to write.
        positions: `(L,)` or `(B, L)`. Positions of query and key for `rotary`; 0 … L - 1 by default.
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
        self._dropout = keras.layers.Dropout(dropout, dtype=self.dtype_policy, name="dropout")

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
        mask=None,
        cache=None,
        cache_index=None,
        positions=None,
        return_attention_scores=False,
        training=None,
    ):
        if cache is None and value is not None:
            (q,) = self._project(query, first=0, count=1)
            keys, values = self.keys_and_values(value)
        elif cache is not None and cache_index is None:
            (q,) = self._project(query, first=0, count=1)
            keys, values = cache
        else:
            q, keys, values = self._project(query, first=0, count=3)
        if self.rotary is not None:
            q = self.rotary(q, positions=positions)
            keys = self.rotary(keys, positions=positions)
        if cache_index is not None:
            keys = ops.slice_update(cache[0], (0, 0, cache_index, 0), ops.cast(keys, cache[0].dtype))
            values = ops.slice_update(cache[1], (0, 0, cache_index, 0), ops.cast(values, cache[1].dtype))

        scores = ops.matmul(q, ops.swapaxes(keys, -1, -2)) * self.key_dim**-0.5  # (B, H, L, N)
        weights = self._softmax(scores, mask)
        mixed = ops.matmul(self._dropout(weights, training=training), values)  # (B, H, L, d)
        mixed = ops.reshape(ops.transpose(mixed, (0, 2, 1, 3)), (*ops.shape(query)[:2], -1))
        outputs = [self.output_dense(mixed)]
        if return_attention_scores:
            outputs.append(weights)
        if cache_index is not None:
            outputs.append((keys, values))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def keys_and_values(self, value):
        """Return the pair of keys and values `(B, H, N, d)` of `value` `(B, N, D)`, ready as a cache."""
        return self._project(value, first=1, count=2)

    def _project(self, x, first: int, count: int):
        """Apply `count` of the query, key and value maps from number `first` on: `(B, H, L, d)` each."""
        inner = self.num_heads * self.key_dim
        columns = slice(first * inner, (first + count) * inner)
        x = ops.matmul(x, self.kernel[:, columns]) + self.bias[columns]
        x = ops.reshape(x, (*ops.shape(x)[:2], count, self.num_heads, self.key_dim))
        x = ops.transpose(x, (2, 0, 3, 1, 4))
        return [x[i] for i in range(count)]

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
