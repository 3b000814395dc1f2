"""Keras's dense layer and embedding, faster to train on CPUs under JAX; the bias on the logits."""

from collections.abc import Callable

import keras
from keras import ops

from kzoo.layers.layer import Layer


def on_rows(function: Callable, x):
    """Apply a function of a matrix `(N, D)` to the rows of `x` `(…, D)`.

    On a CPU, JAX computes a kernel's gradient from `(B, L, D)` up to 4 times as slowly as from a matrix,
    because it copies a transposed tensor.
    """
    if len(x.shape) == 2:
        return function(x)
    shape = ops.shape(x)
    rows = function(ops.reshape(x, (-1, shape[-1])))
    return ops.reshape(rows, (*shape[:-1], rows.shape[-1]))


class Quantizable:
    """Mixin: Keras may quantize this subclass of its layer, which it refuses by default (`type_check`)."""

    def quantize(self, mode=None, type_check=True, config=None):
        super().quantize(mode, type_check=False, config=config)


@keras.saving.register_keras_serializable("kzoo")
class Dense(Quantizable, keras.layers.Dense):
    """`keras.layers.Dense`, faster to train on a CPU under JAX."""

    def call(self, inputs, training=None):
        return on_rows(super().call, inputs)


@keras.saving.register_keras_serializable("kzoo")
class ReversibleEmbedding(Quantizable, keras.layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding`, faster to train on a CPU under JAX."""

    def call(self, inputs, reverse=False):
        if not reverse:
            return super().call(inputs)
        project = super().call
        return on_rows(lambda x: project(x, reverse=True), inputs)


@keras.saving.register_keras_serializable("kzoo")
class OutputBias(Layer):
    """Adds a learned bias, initially 0, to the logit of each token.

    Call arguments:
        inputs: `(…, V)`.

    Returns:
        `(…, V)`.
    """

    def build(self, inputs_shape):
        self.bias = self.add_weight((inputs_shape[-1],), name="bias", initializer="zeros")

    def call(self, inputs):
        return inputs + self.bias
