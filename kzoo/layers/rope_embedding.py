"""RoPE: rotary position embedding."""

import keras
from keras_hub.layers import RotaryEmbedding


@keras.saving.register_keras_serializable("kzoo")
class RoPEEmbedding(RotaryEmbedding):
    """Rotary position embedding (RoPE): rotates queries and keys by angles that grow with the position.

    keras-hub's `RotaryEmbedding`, with defaults for queries and keys that have a head axis. The feature
    pair (i, i + d/2) at position p is rotated by the angle p · max_wavelength^(-2i/d), so that the product of
    a query and a key depends only on their distance (Eq. 15 and 34, up to a permutation of the features:
    the paper pairs neighbouring features).

    Args:
        max_wavelength: int. Base of the wavelengths. Defaults to `10000`.
        sequence_axis: int. Axis of the positions. Defaults to `-2`.
        feature_axis: int. Axis of the features. Defaults to `-1`.
        **kwargs: other arguments of `keras_hub.layers.RotaryEmbedding` and `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, H, L, d)`, d even.
        start_index: int or integer tensor. Position of the first of the `L` tokens. Defaults to `0`.
        positions: `(L,)` or `(B, L)`. Positions of the `L` tokens, in place of `start_index`.

    Returns:
        `(B, H, L, d)`: the inputs, rotated.

    Raises:
        ValueError: an odd d; axes that the inputs do not have, or the same one twice.

    Example:

    >>> queries = keras.random.normal((2, 4, 10, 32))
    >>> RoPEEmbedding()(queries).shape
    (2, 4, 10, 32)

    Reference:
        Su et al. 2021, "RoFormer: Enhanced Transformer with Rotary Position Embedding".
        https://arxiv.org/abs/2104.09864
    """

    def __init__(
        self, max_wavelength: int = 10000, sequence_axis: int = -2, feature_axis: int = -1, **kwargs
    ):
        super().__init__(max_wavelength, sequence_axis=sequence_axis, feature_axis=feature_axis, **kwargs)
        self.supports_masking = True
