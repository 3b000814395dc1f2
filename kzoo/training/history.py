"""A run's history on disk, one row per epoch; it also decides when to stop."""

import csv
from pathlib import Path

import keras

from kzoo.files import whole_file
from kzoo.training.checkpoints import Checkpoints


class History(keras.callbacks.Callback):
    """Writes the history as CSV after each epoch, and stops training when patience runs out.

    Args:
        path: the file.
        checkpoints: they keep the history; place them before this callback.
        patience: int. Epochs without a better validation BLEU before training stops; 0: it never stops.
    """

    def __init__(self, path: Path, checkpoints: Checkpoints, patience: int):
        super().__init__()
        self.path, self.checkpoints, self.patience = path, checkpoints, patience

    @property
    def out_of_patience(self) -> bool:
        """Whether the last epochs brought no better validation BLEU."""
        scores = [row["val_bleu"] for row in self.checkpoints.history]
        last = scores[-self.patience :]
        return (
            bool(self.patience) and len(scores) > self.patience and max(last) <= max(scores[: -self.patience])
        )

    def on_epoch_end(self, epoch, logs=None):
        self.write()
        if self.out_of_patience:
            self.model.stop_training = True

    def write(self):
        """Write the file, on the worker that writes the run's folder."""
        if not self.checkpoints.strategy.is_chief:
            return
        history = self.checkpoints.history
        names = dict.fromkeys(name for row in history for name in row)
        with whole_file(self.path) as path, open(path, "w", newline="") as file:
            writer = csv.DictWriter(file, fieldnames=list(names))
            writer.writeheader()
            writer.writerows(history)
