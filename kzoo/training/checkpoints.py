"""Checkpoints: every epoch on disk, whole or not at all, so that a killed run goes on where it was."""

import json
import shutil
from pathlib import Path

import keras
import numpy as np

from kzoo.files import whole_folder

WEIGHTS, STATE = "checkpoint.weights.h5", "state.json"


class Checkpoints(keras.callbacks.Callback):
    """Saves model, optimizer and history after each epoch; keeps the latest and the best.

    Each is a folder, written under another name and renamed when it is complete.

    Args:
        folder: where they are kept.
        monitor: name in the epoch's logs; the greater, the better.
        keep_best: int. How many of the best are kept beside the latest.
    """

    def __init__(self, folder: str | Path, monitor: str = "val_bleu", keep_best: int = 1):
        super().__init__()
        self.folder = Path(folder)
        self.monitor = monitor
        self.keep_best = keep_best
        self.history: list[dict] = []

    def restore(self) -> int:
        """Load the latest checkpoint into the compiled model, and return the number of epochs it has seen."""
        saved = self._saved()
        if not saved:
            return 0
        state = json.loads((saved[-1] / STATE).read_text())
        self.history = state["history"]
        self.model.optimizer.build(self.model.trainable_variables)
        self.model.load_weights(saved[-1] / WEIGHTS)
        for variable, seed in zip(self._seeds(), state["seeds"], strict=True):
            variable.assign(seed)
        return len(self.history)

    def on_epoch_end(self, epoch, logs=None):
        self.history.append({"epoch": epoch + 1, **{name: float(value) for name, value in logs.items()}})
        with whole_folder(self.folder / f"epoch_{epoch + 1:04d}") as folder:
            self.model.save_weights(folder / WEIGHTS)
            seeds = [np.asarray(seed).tolist() for seed in self._seeds()]
            (folder / STATE).write_text(json.dumps({"history": self.history, "seeds": seeds}))
        kept = {*self.best(), self._saved()[-1]}
        for folder in self._saved():
            if folder not in kept:
                shutil.rmtree(folder)

    def best(self) -> list[Path]:
        """Return the folders of the best checkpoints, best first."""
        scores = {f"epoch_{row['epoch']:04d}": row[self.monitor] for row in self.history}
        return sorted(self._saved(), key=lambda folder: -scores[folder.name])[: self.keep_best]

    def load_average_of_best(self):
        """Set the model's weights to the mean of the best checkpoints' weights.

        Averaging the last checkpoints is Vaswani et al. 2017, Section 6.1; the best by validation is ours.
        """
        total = None
        for folder in self.best():
            self.model.load_weights(folder / WEIGHTS)
            weights = [np.asarray(w, "float64") for w in self.model.get_weights()]
            total = weights if total is None else [a + b for a, b in zip(total, weights, strict=True)]
        self.model.set_weights([w / len(self.best()) for w in total])
        for layer in self.model.backbone.layers:
            if hasattr(layer, "bake"):
                layer.empty()  # the mean of the tables is not the table of the mean

    def _seeds(self) -> list:
        """Return the variables of dropout's random state, which Keras does not count among the weights."""
        return [variable for variable in self.model.variables if variable.name == "seed_generator_state"]

    def _saved(self) -> list[Path]:
        return sorted(self.folder.glob("epoch_*"))
