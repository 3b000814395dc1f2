"""Where XLA compiles a model: decided here, from what the model's class says."""

import keras


def uses_xla(backbone: keras.Model) -> bool:
    """Return whether XLA compiles a backbone on this backend: what `jit_compile` of `compile` takes."""
    return keras.backend.backend() in backbone.xla_backends
