"""A bias on the logits."""

import keras


@keras.saving.register_keras_serializable("kzoo")
class OutputBias(keras.layers.Layer):
    """Adds a learned number to the logit of each token, 0 at first.

    Call arguments:
        inputs: `(…, V)`.

    Returns:
        `(…, V)`.
    """

    def build(self, inputs_shape):
        self.bias = self.add_weight((inputs_shape[-1],), name="bias", initializer="zeros")

    def call(self, inputs):
        return inputs + self.bias

    def compute_output_shape(self, inputs_shape):
        return inputs_shape
