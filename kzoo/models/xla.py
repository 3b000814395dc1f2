"""Decides whether XLA compiles a model, from the attributes of the model's class."""

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
