"""The run's log for TensorBoard."""

import contextlib
import importlib.util
from pathlib import Path

import keras

from kzoo.errors import UserError


def curves(folder: Path) -> list[keras.callbacks.Callback]:
    """Return the callback that writes TensorBoard's log, through TensorFlow; none if one is missing."""
    # keras-hub brings TensorFlow without TensorBoard.
    missing = [name for name in ("tensorflow", "tensorboard") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"{' and '.join(missing)}: not installed; this run has no TensorBoard log, only history.csv")
        return []
    return [Curves(folder)]


class Curves(keras.callbacks.TensorBoard):
    """Keras's callback, whose failure to write, as on a full disk, is one line."""

    def set_model(self, model):
        with self._writing():
            super().set_model(model)

    def on_train_begin(self, logs=None):
        with self._writing():
            super().on_train_begin(logs)

    def on_epoch_end(self, epoch, logs=None):
        with self._writing():
            super().on_epoch_end(epoch, logs)
            for writer in self._writers.values():
                writer.flush()

    def on_train_end(self, logs=None):
        with self._writing():
            super().on_train_end(logs)

    @contextlib.contextmanager
    def _writing(self):
        try:
            yield
        except Exception as error:
            if not type(error).__module__.startswith("tensorflow"):  # not imported for its errors' names
                raise
            reason = str(error).splitlines()[0].rpartition("; ")[2]  # what follows the operation and the file
            raise UserError(f"{self.log_dir}: cannot be written ({reason})") from None
