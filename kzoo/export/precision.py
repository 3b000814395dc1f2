"""The weights of an exported model, in fewer bits if requested."""

import keras

from kzoo.errors import UserError
from kzoo.models.preset_checks import check_float16


def check_precision(precision: str):
    """Reject an unknown precision.

    Raises:
        UserError: it is not one of the precisions.
    """
    if precision not in PRECISIONS:
        raise UserError(f"precision is one of {', '.join(PRECISIONS)}, not {precision!r}")


def is_quantized(backbone: keras.Model) -> bool:
    """Return whether some of a backbone's weights are integers with scales, after Keras's `quantize`."""
    return any(getattr(layer, "quantization_mode", None) for layer in backbone._flatten_layers())


def quantized(backbone: keras.Model) -> keras.Model:
    """Return a copy of a backbone whose dense and embedding layers hold int8 weights.

    Keras's own quantization: weights with one scale per channel, activations quantized dynamically. The joint
    kernels of attention and recurrent cells, which it does not support, stay in float32.

    Raises:
        UserError: the backbone is quantized already.
    """
    if is_quantized(backbone):
        raise UserError("the translator is quantized already: leave precision out")
    copy = type(backbone).from_config(backbone.get_config())
    copy.set_weights(backbone.get_weights())
    kinds = (keras.layers.Dense, keras.layers.Embedding)
    copy.quantize("int8", filters=lambda layer: isinstance(layer, kinds))
    return copy


class FullWeights:
    """A backbone's weights as they are.

    Args:
        backbone: a model on TensorFlow.

    Attributes:
        backbone: the model to run.
        variables: what a SavedModel stores.
    """

    def __init__(self, backbone: keras.Model):
        self.backbone = backbone
        self.variables = [weight.value for weight in backbone.variables]

    def reading(self, function):
        """Return a function of tensors that runs the model."""
        return function


class HalfWeights:
    """A backbone's weights in float16, which functions read in float32: half the file size, the same speed.

    Args:
        backbone: a model on TensorFlow.

    Raises:
        UserError: a weight beyond float16.
    """

    def __init__(self, backbone: keras.Model):
        import tensorflow as tf

        check_float16(backbone.variables)
        self.backbone = backbone
        self._halves = [
            (weight, tf.Variable(tf.cast(weight.value, tf.float16), trainable=False))
            for weight in backbone.variables
            if weight.dtype == "float32"
        ]
        kept = [weight.value for weight in backbone.variables if weight.dtype != "float32"]
        self.variables = [half for _, half in self._halves] + kept

    def reading(self, function):
        """Return a function that runs the model, now with the float16 weights."""
        import tensorflow as tf

        def read(*inputs):
            weights = [(weight, tf.cast(half, tf.float32)) for weight, half in self._halves]
            with keras.StatelessScope(weights):
                return function(*inputs)

        return read


PRECISIONS = {
    "float32": FullWeights,
    "float16": HalfWeights,
    "int8": lambda backbone: FullWeights(quantized(backbone)),
}
