"""The precision of the weights in exported models."""

import keras

from kzoo.errors import UserError
from kzoo.models.backbones import is_quantized

PRECISIONS = ("float32", "float16", "int8")


def check_precision(precision: str):
    """Raise `UserError` for an unknown precision."""
    if precision not in PRECISIONS:
        raise UserError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")


def quantized(backbone: keras.Model) -> keras.Model:
    """Return a copy of a backbone, with int8 weights in dense and embedding layers.

    This is Keras's quantization: weights have one scale per channel, and activations are quantized
    dynamically. Attention's joint kernels and recurrent cells stay in float32.

    Raises:
        UserError: the backbone is quantized already.
    """
    if is_quantized(backbone):
        raise UserError("the translator is already quantized: leave precision out")
    copy = type(backbone).from_config(backbone.get_config())
    copy.set_weights(backbone.get_weights())
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    copy.quantize("int8", filters=lambda layer: isinstance(layer, kinds))
    return copy
