"""A bias on the logits."""

import keras

from kzoo.layers.dense import add_bias, on_rows
from kzoo.layers.layer import Layer


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
        return on_rows(lambda logits: add_bias(logits, self.bias), inputs)
