"""Relative position bias: a learned scalar for each distance and head, added to the scores of attention."""

import keras
import numpy as np
from keras import ops

from kzoo.layers.layer import Layer


@keras.saving.register_keras_serializable("kzoo")
class RelativePositionBias(Layer):
    """Learned scalar for each relative position and head, in logarithmic buckets.

        score(m, n) = q_m · k_n / sqrt(d) + b[bucket(n - m), head]

    It replaces a position encoding (Eq. 11 of the PoPE paper, after T5). Each bucket of the first half holds
    one distance. Each of the second half holds a range of distances; the ranges grow by a constant factor up
    to `max_distance`, and all larger distances share the last bucket. If two-sided, half of the buckets are
    for keys before the query and half for keys after it. If one-sided, all are for keys before it; the keys
    after it, which a causal mask hides, share the query's own bucket.

    T5 does not divide the scores by sqrt(d); `MultiHeadAttention` does, and then adds the bias. As in T5, the
    layers of a stack share one bias: call this layer once and pass the result to each of them.

    Args:
        num_heads: int. H.
        num_buckets: int. Defaults to `32`.
        max_distance: int. From this distance on, all positions share a bucket. Defaults to `128`.
        two_sided: bool. `True` for an encoder, the default; `False` for a decoder.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, L, D)`. Only its length matters.
        positions: `(L,)` integers. Positions of the queries; 0 … L - 1 by default.
        key_positions: `(N,)` integers. Positions of the keys; those of the queries by default.

    Returns:
        `(H, L, N)`, for the argument `position_bias` of `MultiHeadAttention`.

    Raises:
        ValueError: `num_heads` below 1; `num_buckets` below 4, or odd if two-sided; a `max_distance` that the
            first half of the buckets already covers.

    Example:

    >>> x = keras.random.normal((2, 10, 64))
    >>> bias = RelativePositionBias(num_heads=4)(x)
    >>> MultiHeadAttention(num_heads=4, key_dim=16)(x, position_bias=bias).shape
    (2, 10, 64)

    Reference:
        Raffel et al. 2020, "Exploring the Limits of Transfer Learning with a Unified Text-to-Text
        Transformer", Section 2.1. https://jmlr.org/papers/v21/20-074.html
    """

    def __init__(
        self,
        num_heads: int,
        num_buckets: int = 32,
        max_distance: int = 128,
        two_sided: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        side = num_buckets // 2 if two_sided else num_buckets
        if num_heads < 1 or num_buckets < 4 or (two_sided and num_buckets % 2) or max_distance <= side // 2:
            raise ValueError(
                "RelativePositionBias needs num_heads ≥ 1, num_buckets ≥ 4 (even if two-sided) and a "
                f"max_distance over {side // 2}, not {num_heads}, {num_buckets} and {max_distance}"
            )
        self.num_heads = num_heads
        self.num_buckets = num_buckets
        self.max_distance = max_distance
        self.two_sided = two_sided
        self._buckets = buckets(num_buckets, max_distance, two_sided)

    def build(self, inputs_shape):
        # Looked up in float32: the gradient of `take` would sum thousands of pairs in half precision.
        self.bias = self.add_weight(
            (self.num_buckets, self.num_heads), name="bias", initializer="glorot_uniform", autocast=False
        )

    def call(self, inputs, positions=None, key_positions=None):
        if positions is None:
            positions = ops.arange(ops.shape(inputs)[-2], dtype="int32")
        if key_positions is None:
            key_positions = positions
        positions, key_positions = (ops.cast(part, "int32") for part in (positions, key_positions))
        relative = ops.clip(key_positions[None] - positions[:, None], -self.max_distance, self.max_distance)
        bucket = ops.take(ops.convert_to_tensor(self._buckets), relative + self.max_distance)  # (L, N)
        bias = ops.cast(ops.take(self.bias, bucket, axis=0), self.compute_dtype)
        return ops.transpose(bias, (2, 0, 1))

    def compute_mask(self, inputs, mask=None):
        return None  # the bias is for pairs of tokens

    def compute_output_shape(self, inputs_shape, positions_shape=None, key_positions_shape=None):
        queries = positions_shape[0] if positions_shape else inputs_shape[-2]
        return (self.num_heads, queries, key_positions_shape[0] if key_positions_shape else queries)


def buckets(num_buckets: int, max_distance: int, two_sided: bool) -> np.ndarray:
    """Return the bucket of each relative position, key - query, from `-max_distance` to `max_distance`.

    Computed in float64: in float32, the first distance of a range could be rounded down.

    Returns:
        `(2 · max_distance + 1,)`, int32.
    """
    relative = np.arange(-max_distance, max_distance + 1)
    if two_sided:
        num_buckets //= 2
        distance, first = np.abs(relative), np.where(relative > 0, num_buckets, 0)
    else:
        distance, first = np.maximum(-relative, 0), 0
    exact = num_buckets // 2
    ranges = np.log(np.maximum(distance, exact) / exact) / np.log(max_distance / exact)  # 0 … 1
    shared = np.minimum(exact + ranges * (num_buckets - exact), num_buckets - 1)
    return (first + np.where(distance < exact, distance, shared)).astype("int32")
