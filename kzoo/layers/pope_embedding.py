"""PoPE: position encoding by Legendre polynomials."""

import operator

import keras
from keras import ops

from kzoo.layers.layer import Layer
from kzoo.positions import pope_table


@keras.saving.register_keras_serializable("kzoo")
class PoPEEmbedding(Layer):
    """Legendre polynomial position encoding (PoPE).

    The position is the polynomial's order, and the features sample the polynomial's domain:

        PE(pos, i) = P_{pos + first_order}(x_i),   x_i = -1 + 2 i / D,   i = 0 … D - 1        (Eq. 14)

    The values are computed once, in float64, by the recurrence between neighbouring positions (Eq. 15). They
    are constants: the layer has no weights, and an encoding does not depend on `max_length`, so the limit
    of a trained model can be raised.

    Args:
        max_length: int. Number of positions in the table. Defaults to `1024`.
        first_order: int. Order of the polynomial at position 0; the paper does not say whether positions
            count from 0 or 1. Defaults to `0`.
        normalize: bool. The root mean square of P_n falls as 1/sqrt(2n + 1). `True` multiplies by
            sqrt((2n + 1) / 2), which gives the orthonormal Legendre functions: their root mean square is
            about that of a sine, 1/sqrt(2), at every position. Defaults to `False`, as in the paper.
        **kwargs: other arguments of `keras.layers.Layer`, such as `name` and `dtype`.

    Call arguments:
        inputs: `(B, L, D)`. Only its shape and dtype matter.
        start_index: int or integer tensor. Position of the first of the `L` tokens, at least 0. Defaults to
            `0`.
        positions: `(L,)` or `(B, L)` integers. Positions of the tokens, in place of `start_index`.

    Returns:
        `(B, L, D)`: the encoding, to be added to the inputs. In a model with masks, use
        `keras.layers.Add()` for this, because Keras's `+` drops masks.

    Raises:
        ValueError: `max_length` below 1 or a negative `first_order`; a negative `start_index` or a length
            over `max_length`, if known statically. `positions` and symbolic values are not checked, because
            compiled code cannot raise: keep them between 0 and `max_length` - 1.

    Example:

    >>> tokens = keras.random.normal((2, 10, 64))
    >>> (tokens + PoPEEmbedding()(tokens)).shape
    (2, 10, 64)

    Reference:
        Aggarwal 2024, "PoPE: Legendre Orthogonal Polynomials Based Position Encoding for Large Language
        Models", Eq. 14 and 15. https://arxiv.org/abs/2405.04585
    """

    def __init__(self, max_length: int = 1024, first_order: int = 0, normalize: bool = False, **kwargs):
        super().__init__(**kwargs)
        if max_length < 1 or first_order < 0:
            raise ValueError(
                f"PoPEEmbedding needs max_length ≥ 1 and first_order ≥ 0, not {max_length} and {first_order}"
            )
        self.max_length = max_length
        self.first_order = first_order
        self.normalize = normalize

    def build(self, inputs_shape):
        table = pope_table(self.max_length, inputs_shape[-1], self.first_order, self.normalize)
        self._table = table.astype("float32")

    def call(self, inputs, start_index: int = 0, positions=None):
        length = inputs.shape[-2]
        if positions is None:
            self._check_length(start_index, length)
            positions = ops.arange(ops.shape(inputs)[-2], dtype="int32") + ops.cast(start_index, "int32")
        table = ops.cast(ops.convert_to_tensor(self._table), self.compute_dtype)
        encoding = ops.take(table, positions, axis=0)  # (L, D) or (B, L, D)
        return ops.broadcast_to(encoding, ops.shape(inputs))

    def _check_length(self, start_index, length):
        try:
            first = operator.index(start_index)
            needed = first + operator.index(length)
        except TypeError:  # symbolic
            return
        if first < 0:
            raise ValueError(f"positions count from 0: start_index must be at least 0, not {first}")
        if needed > self.max_length:
            raise ValueError(
                f"PoPEEmbedding has max_length={self.max_length} positions, the inputs need {needed}; "
                "give a larger max_length (the encodings of the first positions do not change)"
            )
