"""`fit` and `evaluate` of a translator on texts, which it tokenizes, as keras-hub's tasks do."""

import keras
import numpy as np

# Private: `fit` takes an adapter of one's own, but Keras does not export the class.
from keras.src.trainers.data_adapters.py_dataset_adapter import PyDatasetAdapter

from kzoo.data import Batches
from kzoo.errors import UserError

REPEATED = -1  # `tf.data.INFINITE_CARDINALITY`


class WithoutAutotuning(PyDatasetAdapter):
    """How `fit` reads batches on TensorFlow: as Keras does, but `tf.data` does not tune how it reads ahead.

    It tunes in a thread that sleeps, twice as long each time and up to a minute. At the end of many epochs,
    `tf.data` waits until it wakes (findings/keras_on_tensorflow_waits_after_each_epoch.sh).
    """

    def get_tf_dataset(self):
        import tensorflow as tf

        options = tf.data.Options()
        options.autotune.enabled = False
        return super().get_tf_dataset().with_options(options)


class FitsTexts:
    """Mixin: `fit` and `evaluate` also take texts and their translations, or a `tf.data` of such pairs.

    They become `kzoo.data.Batches` with its defaults. Everything else is Keras's.
    """

    def fit(self, x=None, y=None, *args, validation_data=None, shuffle=True, **kwargs):
        if texts := text_sides(x, y):
            x, y, shuffle = self._batches(*texts, shuffle=shuffle), None, False  # they shuffle by themselves
        pair = isinstance(validation_data, tuple) and len(validation_data) > 1
        held_out = validation_data[:2] if pair else (validation_data, None)
        if texts := text_sides(*held_out):
            validation_data = self._batches(*texts, shuffle=False)
        if y is None and kwargs.get("sample_weight") is None:
            x = adapted(x, shuffle, kwargs.get("class_weight"))
        validation_data = adapted(validation_data)
        values = []
        if keras.backend.backend() == "jax" and self.compiled:
            if not self.optimizer.built:
                self.optimizer.build(self.trainable_variables)
            variables = self.variables + self.optimizer.variables + self.metrics_variables
            values = [(variable, variable.value) for variable in variables]
        try:
            return super().fit(x, y, *args, validation_data=validation_data, shuffle=shuffle, **kwargs)
        except BaseException:
            # On JAX, Keras takes the arrays out of the variables for a step. If the first one fails, it does
            # not put them back. Those that a step has used are deleted.
            if not any(value.is_deleted() for _, value in values):
                for variable, value in values:
                    variable.assign(value)
            raise

    def evaluate(self, x=None, y=None, *args, **kwargs):
        if texts := text_sides(x, y):
            x, y = self._batches(*texts, shuffle=False), None
        if y is None and kwargs.get("sample_weight") is None:
            x = adapted(x)
        return super().evaluate(x, y, *args, **kwargs)

    def _batches(self, source: list[str], target: list[str], shuffle: bool) -> Batches:
        if self.multilingual or self.image_shape:
            needed = "PairBatches" if self.multilingual else "Batches with images"
            raise UserError(f"this model reads more than texts: give kzoo.data's {needed}")
        direction = self.direction()
        tokens = [self._tokenizer_for(direction, side)(texts) for side, texts in enumerate((source, target))]
        return Batches(*tokens, shuffle=shuffle, max_length=self.max_length)


def adapted(data, shuffle: bool = False, class_weight: dict | None = None):
    """Return batches as `fit` and `evaluate` should read them on this backend; other data as it is."""
    if keras.backend.backend() == "tensorflow" and isinstance(data, keras.utils.PyDataset):
        return WithoutAutotuning(data, class_weight, shuffle)
    return data


def text_sides(x, y) -> tuple[list[str], list[str]] | None:
    """Return texts and their translations as lists; `None` if `x` is something else.

    Args:
        x: a list or array of texts; or a `tf.data.Dataset` of pairs of texts, batched or not.
        y: the translations of a list or array.

    Raises:
        UserError: texts without translations; a dataset that repeats without end.
    """
    kinds = getattr(x, "element_spec", None)  # a dataset's; TensorFlow need not be installed
    if isinstance(kinds, tuple) and [getattr(kind, "dtype", None) for kind in kinds] == ["string"] * 2:
        if x.cardinality() == REPEATED:
            raise UserError("this dataset of texts has no end: leave repeat() out, and give fit its epochs")
        pairs = [[np.ravel(side) for side in pair] for pair in x.as_numpy_iterator()]
        return tuple([text.decode() for side in sides for text in side] for sides in zip(*pairs, strict=True))
    if isinstance(x, np.ndarray) and x.dtype.kind in "OUT":
        x = x.tolist()
    if not (isinstance(x, list | tuple) and x and all(isinstance(text, str) for text in x)):
        return None
    if y is None:
        raise UserError("texts need their translations: fit(texts, translations)")
    return list(x), list(y)
