"""Where XLA compiles a model: decided here, from what the model's class says."""

import keras


def uses_xla(backbone: keras.Model) -> bool:
    """Return whether XLA compiles a backbone on this backend: what `jit_compile` of `compile` takes.

    Under `tf.distribute` it does not: compiled code cannot read an embedding's copy on another device than
    the first (keras issues 18145 and 20763).
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if tf.distribute.has_strategy():
            return False
    return backend in backbone.xla_backends
