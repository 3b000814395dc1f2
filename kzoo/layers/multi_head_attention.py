"""Multi-head attention with positions in the heads or on the scores, and a cache; the masked softmax."""

import functools

import keras
from keras import ops

from kzoo.layers.dense import FACTORS, Adaptable, Dense, add_bias, on_rows
from kzoo.layers.dropout import Dropout
from kzoo.layers.layer import Layer

CAUSAL_BLOCK = 128  # queries; of 64, 128 and 256 the fastest at 1,024 tokens
# From this many keys on, a GPU uses Keras's fused operation. Up to 256 keys it is slower: without it, a
# training step of the layer takes 0.94 to 0.95 of the time (H200, JAX; more keys were not measured).
FUSED_FROM = 512


@keras.saving.register_keras_serializable("kzoo")
class MultiHeadAttention(Adaptable, Layer):
    """Multi-head scaled dot-product attention.

        softmax(Q Kᵀ / sqrt(d) + bias + mask) V   in each of H heads, concatenated and projected

    One kernel `(D, 3·H·d)` holds the query, key and value maps, so self-attention needs only one product.

    A cache holds the rotated, scaled keys `(B, H, d, N)` and the values `(B, H, N, d)` of earlier tokens. The
    keys are stored transposed, which cuts beam-search time by 5 %. With `cache_index`, the inputs' own keys
    and values are first written to entries `cache_index … cache_index + L - 1`. Without it, the cache is only
    read, as in cross-attention. In a beam search N is steps × beams, and the mask hides all entries except
    those of a hypothesis's ancestors.

    On a GPU, from 512 keys on, the layer calls `keras.ops.dot_product_attention`, which stores no scores if
    the backend has a kernel for the inputs (JAX has none for odd lengths). It cannot return or drop weights,
    its kernels do not support every bias, and a cache would have to be transposed: these cases, and fewer
    keys, are computed as on a CPU.

    Args:
        num_heads: int. H.
        key_dim: int. d, the width of a head.
        dropout: float. Rate on the attention weights. Defaults to `0`.
        rotary: layer called as `rotary(x (B, H, L, d), positions=…)` on queries and keys, such as
            `RoPEEmbedding` or `PerHeadPoPE`. Defaults to `None`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        query: `(B, L, D)`.
        value: `(B, N, D)`. The tokens to attend to; the query itself by default.
        key: `(B, N, D)`. What the query is compared with, if not with `value`.
        attention_mask: bool, `(B, L, N)` or broadcastable to `(B, H, L, N)`. `True` where a query may attend.
        use_causal_mask: bool. Whether each token attends only to itself and to earlier tokens, in
            self-attention without a cache. Above 128 tokens this is faster than passing the same mask. Not
            together with `attention_mask`. Defaults to `False`.
        position_bias: `(H, L, N)` or broadcastable to `(B, H, L, N)`. Added to the scores; see
            `RelativePositionBias`.
        cache: `(keys (B, H, d, N), values (B, H, N, d))`.
        cache_index: int or integer tensor. First entry of the cache to write.
        positions: `(L,)` or `(B, L)`. The query's positions for `rotary`; 0 … L - 1 by default. The keys of
            `value` have the positions 0 … N - 1.
        return_attention_scores: bool. Defaults to `False`.
        training: bool. Whether dropout is on.
        mask, query_mask: bool `(B, L)`. `True` at the query's tokens: self-attention without a cache attends
            only to these. Keras sets one of the two masks and passes it on with the output.
        value_mask, key_mask: bool `(B, N)`. `True` at the tokens of `value` and `key`, or of a cache that is
            only read.

    Returns:
        `(B, L, D)`; then `(B, H, L, N)` weights if requested; then the cache if it was written.

    Raises:
        ValueError: `num_heads` or `key_dim` below 1; a dropout outside [0, 1); a `rotary` that is not a
            layer; a value or a key that has not the query's width; a key without a value; a causal mask
            together with another mask, a value or a cache; anything that `rotary` rejects, such as an odd d.

    Example:

    >>> x = keras.random.normal((2, 10, 64))
    >>> MultiHeadAttention(num_heads=4, key_dim=16)(x).shape
    (2, 10, 64)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Section 3.2. https://arxiv.org/abs/1706.03762
    """

    def __init__(
        self,
        num_heads: int,
        key_dim: int,
        dropout: float = 0.0,
        rotary: keras.layers.Layer | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if num_heads < 1 or key_dim < 1:
            raise ValueError(f"attention needs num_heads ≥ 1 and key_dim ≥ 1, not {num_heads} and {key_dim}")
        if rotary is not None and not isinstance(rotary, keras.layers.Layer):
            raise ValueError(f"rotary is a layer, such as RoPEEmbedding(), not {rotary!r}")
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self.rotary = rotary
        self.lora_enabled = False
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, query_shape, value_shape=None, key_shape=None):
        width, inner = query_shape[-1], self.num_heads * self.key_dim
        for name, shape in (("value", value_shape), ("key", key_shape)):
            if shape is not None and shape[-1] != width:
                raise ValueError(f"the query has width {width}, the {name} {shape[-1]}: they must be equal")
        if self.rotary is not None and not self.rotary.built:
            self.rotary.build((query_shape[0], self.num_heads, query_shape[1], self.key_dim))
        # Glorot's bound for the joint kernel is 1/sqrt(2) of a single map's. Deep post-norm stacks need
        # these smaller initial weights.
        self._kernel = self.add_weight(
            (width, 3 * inner), name="kernel", initializer=keras.initializers.GlorotUniform()
        )
        self.bias = self.add_weight((3 * inner,), name="bias", initializer="zeros")
        self.output_dense = Dense(width, dtype=self.dtype_policy, name="output")
        self.output_dense.build((*query_shape[:-1], inner))

    def enable_lora(self, rank: int, lora_alpha: float | None = None):
        """Freeze both kernels, and add LoRA's factors to the joint one as `keras.layers.Dense` does.

        Raises:
            ValueError: the layer has factors already.
        """
        if self.lora_enabled:
            raise ValueError(f"lora is already enabled on layer {self.name}: call merge_lora() first")
        shapes = (self._kernel.shape[0], rank), (rank, self._kernel.shape[1])
        self._tracker.unlock()  # private: Keras's own layers add weights after `build` in this way
        for name, shape, initializer in zip(FACTORS, shapes, ("he_uniform", "zeros"), strict=True):
            setattr(self, name, self.add_weight(shape, initializer, "float32", name=name))
        self._tracker.lock()
        for kernel in self._kernels:
            kernel.trainable = False
        self.lora_enabled, self.lora_rank, self.lora_alpha = True, rank, lora_alpha or rank

    @property
    def _kernels(self) -> list:
        return [self._kernel, self.output_dense._kernel]

    @property
    def kernel(self):
        """The joint kernel, with the product of LoRA's factors."""
        if not self.lora_enabled:
            return self._kernel
        product = ops.matmul(*(getattr(self, name) for name in FACTORS))
        return ops.cast(self._kernel + self.lora_alpha / self.lora_rank * product, self.compute_dtype)

    def call(
        self,
        query,
        value=None,
        key=None,
        *,
        attention_mask=None,
        use_causal_mask: bool = False,
        position_bias=None,
        cache=None,
        cache_index=None,
        positions=None,
        return_attention_scores: bool = False,
        training: bool | None = None,
        mask=None,
        query_mask=None,
        value_mask=None,
        key_mask=None,
    ):
        if key is not None and value is None:
            raise ValueError("a key needs a value: call it as layer(query, value, key)")
        if use_causal_mask and not (attention_mask is value is cache is None):
            raise ValueError("a causal mask is for self-attention without another mask and without a cache")
        token_mask = both(value_mask, key_mask)
        if cache is not None and cache_index is None:
            (q,) = self.project(query, first=0, count=1)
            keys, values = cache
        elif value is not None:
            (q,) = self.project(query, first=0, count=1)
            keys, values = self.keys_and_values(value, key)
        else:
            q, keys, values = self.project(query, first=0, count=3)
            keys = self.scaled_keys(keys, positions)
            token_mask = query_mask if mask is None else mask
        q = self.rotate(q, positions)
        if cache_index is not None:
            token_mask = None
            keys = ops.slice_update(cache[0], (0, 0, 0, cache_index), ops.cast(keys, cache[0].dtype))
            values = ops.slice_update(cache[1], (0, 0, cache_index, 0), ops.cast(values, cache[1].dtype))

        if attention_mask is not None and len(attention_mask.shape) == 3:
            attention_mask = attention_mask[:, None]  # (B, 1, L, N)
        if token_mask is not None:
            token_mask = token_mask[:, None, None, :]  # (B, 1, 1, N)
        plain = return_attention_scores or position_bias is not None or (training and self.dropout)
        number = keys.shape[-1]  # if unknown, None on TensorFlow and a symbol on JAX
        many_keys = not isinstance(number, int) or number >= FUSED_FROM
        if many_keys and on_gpu() and cache is None and not plain:
            mixed = mix_fused(q, keys, values, both(attention_mask, token_mask), use_causal_mask)
        elif use_causal_mask:
            mixed, weights = self.mix_causally(
                q, keys, values, token_mask, return_attention_scores, training, position_bias
            )
        else:
            mixed, weights = self.mix(
                q, keys, values, both(attention_mask, token_mask), training, position_bias
            )
        outputs = [self.output_dense(ops.reshape(mixed, (*ops.shape(query)[:2], -1)))]
        if return_attention_scores:
            outputs.append(weights)
        if cache_index is not None:
            outputs.append((keys, values))
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def mix_causally(self, q, keys, values, token_mask, whole: bool, training, bias=None) -> tuple:
        """Return what `mix` does, with a causal mask. Without `whole`, the weights may be `None`.

        Without `whole`, a CPU processes a block of queries at a time and skips the keys after the block: at
        1,024 tokens this takes 0.7 of the time. L and N are equal; `token_mask` is `None` or `(B, 1, 1, N)`.
        """
        length = ops.shape(q)[2]
        if whole or on_gpu() or not isinstance(length, int):
            return self.mix(q, keys, values, both(not_later(0, length), token_mask), training, bias)
        mixed = []
        for first in range(0, length, CAUSAL_BLOCK):
            last = min(first + CAUSAL_BLOCK, length)
            mask = both(not_later(first, last), None if token_mask is None else token_mask[..., :last])
            seen = q[:, :, first:last], keys[..., :last], values[:, :, :last]
            seen_bias = bias
            if bias is not None:  # of one row for all queries, or a row for each
                seen_bias = bias[..., :last] if bias.shape[-2] == 1 else bias[..., first:last, :last]
            mixed.append(self.mix(*seen, mask, training, seen_bias)[0])
        return ops.concatenate(mixed, axis=1), None

    def mix(self, q, keys, values, mask, training, bias=None) -> tuple:
        """Return the weighted sums of the values `(B, L, H, d)`, and the weights `(B, H, L, N)`.

        Args:
            q: queries `(B, H, L, d)`.
            keys: `(B, H, d, N)`, as `scaled_keys` returns them.
            values: `(B, H, N, d)`.
            mask: bool, broadcastable to `(B, H, L, N)`, or `None`.
            training: whether dropout is on.
            bias: added to the scores; broadcastable to `(B, H, L, N)`, or `None`.
        """
        scores = ops.matmul(q, keys)
        if bias is not None:
            scores = scores + ops.cast(bias, scores.dtype)
        weights = masked_softmax(scores, mask)
        mixed = ops.matmul(self._dropout(weights, training=training), values)
        return ops.transpose(mixed, (0, 2, 1, 3)), weights

    def keys_and_values(self, value, key=None) -> tuple:
        """Return keys `(B, H, d, N)`, by default of `value`, and values `(B, H, N, d)`, usable as a cache."""
        if key is None:
            keys, values = self.project(value, first=1, count=2)
        else:
            (keys,), (values,) = self.project(key, first=1, count=1), self.project(value, first=2, count=1)
        return self.scaled_keys(keys), values

    def scaled_keys(self, keys, positions=None):
        """Return keys `(B, H, L, d)` rotated, scaled and transposed: `(B, H, d, L)`."""
        # Scaled before the product, which could otherwise overflow float16. Scaling the queries instead would
        # let XLA merge the transpose into the gradient's product, which is then 3 times as slow on a CPU.
        return ops.swapaxes(self.rotate(keys, positions), -1, -2) * self.key_dim**-0.5

    def project(self, x, first: int, count: int):
        """Apply `count` of the query, key and value maps, starting at number `first`: `(B, H, L, d)` each."""
        inner = self.num_heads * self.key_dim
        columns = slice(first * inner, (first + count) * inner)
        x = on_rows(lambda rows: add_bias(ops.matmul(rows, self.kernel[:, columns]), self.bias[columns]), x)
        # Split first, then transpose: a training step takes 0.95 of the time of slicing one big transpose.
        shape = (*ops.shape(x)[:2], self.num_heads, self.key_dim)
        return [
            ops.transpose(ops.reshape(part, shape), (0, 2, 1, 3)) for part in ops.split(x, count, axis=-1)
        ]

    def rotate(self, x, positions=None):
        """Return queries or keys `(B, H, L, d)`, rotated if there is a `rotary` layer."""
        return x if self.rotary is None else self.rotary(x, positions=positions)


def masked_softmax(scores, mask=None):
    """Return the softmax over the last axis: computed in float32, returned in the scores' dtype.

    Args:
        scores: `(…, N)`.
        mask: bool, broadcastable to `(…, N)`. Entries at `False` get weight 0; rows that are all `False` get
            uniform weights. All `True` by default.
    """
    wide = ops.cast(scores, "float32")
    wide = wide if mask is None else ops.where(mask, wide, -1e9)
    return ops.cast(ops.softmax(wide, axis=-1), scores.dtype)


def mix_fused(q, keys, values, mask, causal: bool):
    """Return the weighted sums `(B, L, H, d)` that `mix` returns, computed by Keras's fused operation."""
    if mask is not None:  # the kernels do not support `(B, 1, 1, N)`
        mask = ops.logical_and(mask, ops.ones((1, 1, ops.shape(q)[2], ops.shape(keys)[3]), "bool"))
    # Rotated queries and keys may be float32, for which there is no kernel.
    q = ops.transpose(ops.cast(q, values.dtype), (0, 2, 1, 3))
    keys = ops.transpose(ops.cast(keys, values.dtype), (0, 3, 1, 2))
    values = ops.transpose(values, (0, 2, 1, 3))
    # JAX's kernel cannot train with odd lengths: if tried, Keras logs a traceback for each attention.
    odd = keras.backend.backend() == "jax" and (q.shape[1] % 2 or keys.shape[1] % 2)
    return ops.dot_product_attention(
        q, keys, values, mask=mask, scale=1.0, is_causal=causal, flash_attention=False if odd else None
    )


@functools.cache
def on_gpu() -> bool:
    """Return whether the backend computes on a GPU."""
    if keras.backend.backend() == "torch":
        import torch

        return torch.cuda.is_available()
    return any(name.startswith("gpu") for name in keras.distribution.list_devices())


def not_later(first, last):
    """Return the causal mask of the queries `first … last - 1`: bool `(last - first, last)`."""
    return ops.arange(last)[None, :] <= ops.arange(first, last)[:, None]


def both(mask, other):
    """Return the logical and of two masks; if one is `None`, the other."""
    if mask is None or other is None:
        return other if mask is None else mask
    return ops.logical_and(mask, other)
