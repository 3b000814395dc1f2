"""Sine position encoding that may begin at a later position, as fairseq's does."""

import keras
from keras import ops
from keras_hub.layers import SinePositionEncoding


@keras.saving.register_keras_serializable("kzoo")
class SinePositions(SinePositionEncoding):
    """Vaswani's sine position encoding, from position `first_position` on.

        PE(p, 2i) = sin(w_i (p + first_position)), PE(p, 2i + 1) = cos(w_i (p + first_position)),
        w_i = max_wavelength^(-2i / D)

    fairseq's models, such as M2M-100, begin at position 2. Their w_i = 10,000^(-i / (D/2 - 1)), which is a
    `max_wavelength` of 10,000^((D/2) / (D/2 - 1)).

    Args:
        first_position: int. The encoding of a sequence's first token is that of this position. Defaults to
            `0`.
        max_wavelength: float. Defaults to `10000`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, L, D)`. Only its shape matters.
        positions: `(L,)` integers; 0 … L - 1 by default.

    Returns:
        `(B, L, D)`.

    Example:

    >>> SinePositions(first_position=2)(keras.ops.zeros((1, 10, 64))).shape
    (1, 10, 64)

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Section 3.5. https://arxiv.org/abs/1706.03762
    """

    def __init__(self, first_position: int = 0, max_wavelength: float = 10_000, **kwargs):
        super().__init__(max_wavelength=max_wavelength, **kwargs)
        self.first_position = first_position

    def call(self, inputs, positions=None):
        if positions is None:
            positions = ops.arange(ops.shape(inputs)[-2])
        return super().call(inputs, positions=ops.cast(positions + self.first_position, self.compute_dtype))

    def get_config(self):
        return {**super().get_config(), "first_position": self.first_position}
