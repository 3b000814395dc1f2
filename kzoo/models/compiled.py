"""What a backbone computes beside its logits and the beam search, compiled; and whether XLA compiles it."""

from collections.abc import Callable

import keras


def uses_xla(backbone: keras.Model, few_calls: bool = False) -> bool:
    """Return whether XLA compiles a backbone on this backend, as the value of `compile`'s `jit_compile`.

    A backbone names the backends on which it does in `xla_backends`; without this attribute, none.

    Under `tf.distribute` it does not: compiled code cannot read an embedding's copy on any device other than
    the first (keras issues 18145 and 20763).

    Args:
        backbone: the model, or the one whose weights the compiled function reads.
        few_calls: whether it only computes single sentences that a user looks at: compiling for TensorFlow
            would take longer than all of them.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if few_calls or tf.distribute.has_strategy():
            return False
    return backend in getattr(backbone, "xla_backends", ())


class BackboneMethod(keras.Model):
    """A function of a backbone's inputs, as a model: `predict_on_batch` compiles it.

    Args:
        backbone: has the weights.
        method: function of the inputs, such as `backbone.matrix`.
        few_calls: as in `uses_xla`.
    """

    def __init__(self, backbone: keras.Model, method: Callable, few_calls: bool = False):
        super().__init__()
        self.backbone = backbone
        self._method = method
        self.built = True  # it has no weights of its own
        self.compile(jit_compile=uses_xla(backbone, few_calls))

    def call(self, inputs):
        return self._method(inputs)
