"""What a backbone computes beside its logits and the beam search, compiled; and whether XLA compiles it."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

from kzoo.decoding.batched_search import batches_by_length, padded_source
from kzoo.text.tokenizers import PAD, START


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
    """

    def __init__(self, backbone: keras.Model, method: Callable):
        super().__init__()
        self.backbone = backbone
        self._method = method
        self.built = True  # it has no weights of its own

    def call(self, inputs):
        return self._method(inputs)


class SourceAttention:
    """Computes a translation's attention to its sentence; compiled once per padded length.

    Not a Keras object, so that it is not saved with the translator.

    Args:
        backbone: has `source_attention`.

    Call arguments:
        source: list of int. The sentence, without start and end; at least one token.
        target: list of int. The translation, also without start and end; T − 1 tokens.
        others: dict. The backbone's other inputs, one row each.

    Returns:
        `(layers, H, T, N)`, float32: for each token of the translation, and for its end, the weights of the
        N entries attended to, padding included.
    """

    def __init__(self, backbone: keras.Model):
        self._backbone, self._compiled = backbone, None

    def __call__(self, source: list[int], target: list[int], others: dict) -> np.ndarray:
        if self._compiled is None:
            compiled = BackboneMethod(self._backbone, self._stacked)
            compiled.compile(jit_compile=uses_xla(self._backbone, few_calls=True))
            self._compiled = compiled  # only when complete: another thread may be here
        ((length, _),) = batches_by_length([max(source, target, key=len)], self._backbone.max_length)
        read = np.full((1, length), PAD, "int32")
        read[0, : len(target) + 1] = [START, *target]
        inputs = {"source": padded_source([source], [0], length), "target": read, **others}
        return self._compiled.predict_on_batch(inputs)[0, :, :, : len(target) + 1]

    def _stacked(self, inputs):
        """Return the backbone's attention `(B, layers, H, T, N)`."""
        return ops.cast(ops.stack(self._backbone.source_attention(inputs), axis=1), "float32")
