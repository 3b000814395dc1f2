"""Whether XLA compiles a backbone, and methods of a backbone as compiled functions."""

from collections.abc import Callable

import keras


def uses_xla(backbone: keras.Model, few_calls: bool = False) -> bool:
    """Return the value of `jit_compile` for functions of a backbone: whether to compile them with XLA.

    A backbone lists in `xla_backends` the backends on which XLA can compile it; without the attribute, none.
    XLA is not used under `tf.distribute`: compiled code reads an embedding only on the first device (keras
    issues 18145 and 20763).

    Args:
        backbone: the model.
        few_calls: whether the function will run for a few single sentences only. On TensorFlow, XLA would
            then take longer to compile than it saves.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if few_calls or tf.distribute.has_strategy():
            return False
    return backend in getattr(backbone, "xla_backends", ())


class BackboneMethod(keras.Model):
    """A function of a backbone's inputs, such as `backbone.matrix`: `predict_on_batch` compiles it."""

    def __init__(self, backbone: keras.Model, method: Callable, few_calls: bool = False):
        super().__init__()
        self.backbone = backbone
        self._method = method
        self.built = True  # it has no weights of its own
        self.compile(jit_compile=uses_xla(backbone, few_calls))

    def call(self, inputs):
        return self._method(inputs)
