"""The residual connection around a sublayer, with layer normalization before or after it."""

import keras

from kzoo.layers.composite_layer import CompositeLayer
from kzoo.layers.dropout import Dropout


@keras.saving.register_keras_serializable("kzoo")
class Residual(CompositeLayer):
    """Residual connection, dropout and layer normalization around a sublayer f.

        post-norm: LayerNorm(x + Dropout(f(x)))        (Vaswani et al. 2017, Section 5.4)
        pre-norm:  x + Dropout(f(LayerNorm(x)))        (Xiong et al. 2020, Figure 1b)

    The sublayer is called between the two calls, so it may take and return whatever it needs:

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
        self.supports_masking = True
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")
        self.layer_norm = keras.layers.LayerNormalization(
            epsilon=1e-5, dtype=self.dtype_policy, name="layer_norm"
        )

    def build(self, inputs_shape, outputs_shape=None):
        self.layer_norm.build(inputs_shape)

    def enter(self, inputs):
        """Return what the sublayer gets: `inputs` `(B, L, D)`, normalized if `norm` is `"pre"`."""
        return self.layer_norm(inputs) if self._pre else inputs

    def call(self, inputs, outputs, training: bool | None = None):
        outputs = inputs + self._dropout(outputs, training=training)
        return outputs if self._pre else self.layer_norm(outputs)

    def compute_output_shape(self, inputs_shape, outputs_shape=None):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "norm": self.norm, "dropout": self.dropout}


def check_norm(norm: str):
    """Raise `ValueError` for an unknown `norm`."""
    if norm not in ("pre", "post"):
        raise ValueError(f'norm is "pre" or "post", not {norm!r}')
