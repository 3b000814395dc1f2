"""What a backbone computes beside its logits, compiled."""

from collections.abc import Callable

import keras


class BackboneMethod(keras.Model):
    """A function of a backbone's inputs, as a model: `predict_on_batch` compiles it.

    Args:
        backbone: has the weights.
        method: function of the inputs, such as `backbone.matrix`.
    """

    def __init__(self, backbone: keras.Model, method: Callable):
        super().__init__()
        self.backbone = backbone
        self._method = method
        self.built = True  # it has no weights of its own

    def call(self, inputs):
        return self._method(inputs)
