"""Checkpoints: the state of training on disk, from which a killed run resumes."""

import itertools
import json
import math
import re
import time
import warnings
from pathlib import Path

import keras
import numpy as np
from keras import ops

from kzoo.errors import UserError
from kzoo.files import atomic_folder, check_space, remove_folder, remove_unfinished, sha256
from kzoo.layers import GlyphEmbedding
from kzoo.training.run_folder import saved_in
from kzoo.training.strategies import Strategy

WEIGHTS, STATE, SUMS = "checkpoint.weights.h5", "state.json", "SHA256SUMS"
LATEST = 3  # number of latest checkpoints kept
# Steps between checks of the loss. If one worker stopped as soon as its own loss is not finite, the others
# would wait for it. One step later, the weights of all workers are affected, so all stop together.
EVERY = 16


class Checkpoints(keras.callbacks.Callback):
    """Saves checkpoints after and within epochs; keeps the latest and the best ones.

    A checkpoint is a folder, written atomically: `epoch_0003` after three epochs,
    `epoch_0003_batch_000120` after another 120 batches. It holds weights, optimizer, random seeds, history,
    the running loss, and the SHA-256 of its files.

    Place it after the callbacks that log the scores to save.

    Args:
        folder: folder of the checkpoints.
        monitor: name in the epoch's logs; greater is better.
        keep_best: int. Number of best checkpoints kept in addition to the latest.
        minutes: float. Time between checkpoints within an epoch; 0: none.
        data: digest of the training and validation data. Checkpoints of other data are rejected.
        strategy: the run's; one device by default. All workers load checkpoints; only the chief's are kept.

    Attributes:
        epoch, batch, step: int. Finished epochs, batches of the next epoch, and batches in total.
        before_fall: str. Name of the checkpoint before the learning rate fell; "" for none.
        may_stop: bool. Whether training can resume from the current batch.
        seconds: float. Time of the current epoch's training steps, summed over restarts, without checkpoints
            and scoring.
        history: one row per epoch.
    """

    def __init__(
        self,
        folder: str | Path,
        monitor: str = "val_bleu",
        keep_best: int = 1,
        minutes: float = 0.0,
        data: str = "",
        strategy: Strategy | None = None,
    ):
        super().__init__()
        self.folder = Path(folder)
        self.monitor, self.keep_best = monitor, keep_best
        self.minutes, self.data, self.strategy = minutes, data, strategy or Strategy()
        self.epoch = self.batch = self.step = 0
        self.history: list[dict] = []
        self.may_stop, self.before_fall = True, ""
        self.seconds, self._began = 0.0, 0.0
        self._last, self._running = "", None
        # For each step since the last check: (step, epoch, batch), and the epoch's mean loss so far.
        self._losses: list[tuple] = []
        self._where = self._checked = None  # (step, epoch, batch) of the last loss; of the last check

    def restore(self):
        """Load the latest undamaged checkpoint into the compiled model, if there is one.

        Raises:
            UserError: all are damaged, the latest is from other data, or workers see different ones.
        """
        if self.strategy.is_chief:
            remove_unfinished(self.folder)
        self.strategy.barrier()
        damaged, saved = [], self._saved()
        self.strategy.check_same("another folder", " ".join(folder.name for folder in saved))
        while saved and (reason := damage(saved[-1])):
            damaged.append(saved.pop())
            print(f"checkpoint {damaged[-1].name} is damaged ({reason}): trying an earlier one")
        if saved:
            self._load(saved[-1])
        elif damaged:
            raise UserError(f"{self.folder}: all checkpoints are damaged; start again in another folder")
        self.strategy.barrier()  # until all workers have read them
        if self.strategy.is_chief:
            for folder in damaged:
                remove_folder(folder)

    def _load(self, folder: Path):
        state = json.loads((folder / STATE).read_text())
        if state["data"] != self.data:
            raise UserError(data_has_changed(folder))
        if not self.model.optimizer.built:  # an optimizer that scales the loss cannot be built twice
            self.model.optimizer.build(self.model.trainable_variables)
        try:
            with warnings.catch_warnings():
                # If the optimizer is of another model, Keras only warns.
                warnings.filterwarnings("error", "Skipping variable loading for optimizer")
                self.model.load_weights(folder / WEIGHTS)
        except (ValueError, UserWarning):
            raise UserError(f"{folder} is the checkpoint of another model: give another folder") from None
        self.assign_seeds(state["seeds"])
        self._last, self.history = folder.name, state["history"]
        self.epoch, self.batch, self.step = state["epoch"], state["batch"], state["step"]
        self.before_fall, self.seconds = state.get("before_fall", ""), 0.0
        if self.batch:
            self.seconds, self._running = state["seconds"], state["running"]

    def on_epoch_begin(self, epoch, logs=None):
        if self._running is not None:  # `fit` has just reset the epoch's mean loss
            for variable, value in zip(self.model.metrics_variables, self._running, strict=True):
                variable.assign(value)
            self._running = None
        now = time.perf_counter()
        self._began, self._saved_at = now - self.seconds, now

    def on_train_batch_end(self, batch, logs=None):
        self.batch += 1
        self.step += 1
        self._where = (self.step, self.epoch + 1, self.batch)
        self._losses.append((self._where, logs["loss"]))
        left = (self.params["steps"] or math.inf) - batch - 1  # Keras may not know the number
        if len(self._losses) >= EVERY or left == 0:
            self._check_loss()
        self.seconds = time.perf_counter() - self._began
        self.may_stop = left != 1  # from a single batch, Keras would infer a fixed length
        due = bool(self.minutes) and time.perf_counter() - self._saved_at >= 60 * self.minutes
        if self.may_stop and self.strategy.any_worker(due, self.step):
            self.save()

    def on_epoch_end(self, epoch, logs=None):
        self.history.append({"epoch": epoch + 1, **{name: float(value) for name, value in logs.items()}})
        self.epoch, self.batch, self.seconds = epoch + 1, 0, 0.0
        self.save()

    def save(self):
        """Write a checkpoint, unless this step already has one.

        Raises:
            UserError: the loss or a weight is not finite; or writing fails, for example on a full disk.
        """
        name = self._name()
        if name == self._last:
            return
        start = time.perf_counter()
        self.check_finite()
        state = json.dumps(self._state())  # before the block: reading a metric needs all workers
        with self.strategy.shared_errors():
            self._write(name, state)
        self._last, self._saved_at = name, time.perf_counter()
        self._began += self._saved_at - start
        if not self.strategy.is_chief:
            return
        saved = self._saved()
        for folder in set(saved) - {*self.best(), *saved[-LATEST:], self.folder / self.before_fall}:
            remove_folder(folder)

    def keep_before_fall(self):
        """Save a checkpoint to which `rewind` goes back."""
        self.before_fall = self._name()
        self.save()

    def rewind(self):
        """Load the checkpoint of `keep_before_fall`, and remove later ones.

        Raises:
            UserError: it is missing or damaged.
        """
        kept = self.folder / self.before_fall
        if reason := damage(kept):
            raise UserError(f"checkpoint {kept} is damaged ({reason}): start again in another folder")
        later = [folder for folder in self._saved() if folder.name > kept.name]
        self._load(kept)
        self.strategy.barrier()  # until all workers have read it
        if self.strategy.is_chief:
            for folder in later:
                remove_folder(folder)

    def _name(self) -> str:
        return f"epoch_{self.epoch:04d}" + (f"_batch_{self.batch:06d}" if self.batch else "")

    def _write(self, name: str, state: str):
        with self.strategy.write_path(self.folder / name) as path, atomic_folder(path) as folder:
            check_space(folder, self._size())
            self.model.save_weights(folder / WEIGHTS)
            (folder / STATE).write_text(state)
            write_digests(folder)

    def check_finite(self):
        """Raise `UserError` if the loss or a weight is not finite, unless this step has been checked."""
        self._check_loss()
        if self._where == self._checked:
            return
        # The weights too: a step computes its loss before updating the weights.
        if not all(np.isfinite(ops.convert_to_numpy(w)).all() for w in self.model.trainable_variables):
            raise self._not_finite("a weight", self._where)
        self._checked = self._where

    def _check_loss(self):
        """Check the losses since the last check."""
        losses, self._losses = self._losses, []  # running means: a non-finite one stays non-finite
        if losses and not math.isfinite(losses[-1][1]):
            where = next(where for where, loss in losses if not math.isfinite(loss))
            raise self._not_finite("the loss", where)

    def _not_finite(self, what: str, where: tuple) -> UserError:
        step, epoch, batch = where
        rate = float(ops.convert_to_numpy(self.model.optimizer.learning_rate))
        kept = f"checkpoint {self._last} is kept" if self._last else "there is no checkpoint yet"
        return UserError(
            f"{what} is not finite at step {step:,} (epoch {epoch}, batch {batch}), learning rate "
            f"{rate:.3g}: training stopped, {kept}; try a lower rate or clip_norm"
        )

    def _state(self) -> dict:
        state = {"epoch": self.epoch, "batch": self.batch, "step": self.step}
        if self.before_fall:
            state["before_fall"] = self.before_fall
        if self.batch:
            running = [ops.convert_to_numpy(value).tolist() for value in self.model.metrics_variables]
            state |= {"seconds": self.seconds, "running": running}
        return {**state, "history": self.history, "seeds": self.seeds(), "data": self.data}

    def _size(self) -> int:
        """Return an upper bound on a checkpoint's size in bytes."""
        variables = [*self.model.variables, *self.model.optimizer.variables]
        return sum(math.prod(v.shape) * np.asarray(0, v.dtype).itemsize + 4096 for v in variables) + 2**16

    def best(self) -> list[Path]:
        """Return the folders of the best checkpoints that exist, best first; equal ones, latest first."""
        rows = sorted(self._scored(), key=lambda row: (*self.quality(row), row["epoch"]), reverse=True)
        folders = (self.folder / f"epoch_{row['epoch']:04d}" for row in rows)
        # Only as many as are kept: on a shared disk, looking for thousands takes seconds.
        return list(itertools.islice(filter(Path.is_dir, folders), self.keep_best))

    def quality(self, row: dict) -> tuple[float, float]:
        """Return a scored epoch's score, then its chrF2: without four correct tokens in a row, BLEU is 0."""
        return row[self.monitor], row.get("val_chrf2", 0.0)

    def impatient_epoch(self, patience: int) -> int:
        """Return the epoch after which patience ran out; 0: none.

        It is the first that was scored, and not better, `patience` epochs or more after the best one.
        """
        best, best_epoch = (), 0
        for row in self._scored():
            if self.quality(row) > best:
                best, best_epoch = self.quality(row), row["epoch"]
            elif 0 < patience <= row["epoch"] - best_epoch:
                return row["epoch"]
        return 0

    def _scored(self) -> list[dict]:
        return [row for row in self.history if self.monitor in row]

    def load_average_of_best(self):
        """Set the model's weights to the mean of the best checkpoints' weights.

        Vaswani et al. 2017, Section 6.1, average the last checkpoints instead. Batch normalization's
        statistics are averaged too; they may differ from the statistics of the mean weights.

        Raises:
            UserError: all of them are damaged or missing.
        """
        reasons = {folder: damage(folder) for folder in self.best()}
        for folder in filter(reasons.get, reasons):
            print(f"checkpoint {folder.name} is damaged ({reasons[folder]}) and left out of the mean")
        whole = [folder for folder, reason in reasons.items() if not reason]
        if not whole:
            raise UserError(
                f"{self.folder}: the best checkpoint is damaged or missing; start again in another folder"
            )
        total = None
        for folder in whole:
            self.model.load_weights(folder / WEIGHTS)
            weights = [np.asarray(w, "float64") for w in self.model.get_weights()]
            total = weights if total is None else [a + b for a, b in zip(total, weights, strict=True)]
        self.model.set_weights([w / len(whole) for w in total])
        for layer in self.model.backbone.layers:
            if isinstance(layer, GlyphEmbedding):
                layer.empty()  # drop baked tables: their mean is not the table of the mean weights

    def seeds(self) -> list:
        """Return dropout's random state, which Keras does not save with the weights."""
        return [ops.convert_to_numpy(seed).tolist() for seed in self._seed_variables()]

    def assign_seeds(self, seeds: list):
        """Restore dropout's random state from the value of `seeds`."""
        for variable, seed in zip(self._seed_variables(), seeds, strict=True):
            variable.assign(seed)

    def _seed_variables(self) -> list:
        return [variable for variable in self.model.variables if variable.name == "seed_generator_state"]

    def _saved(self) -> list[Path]:
        return [folder for _, _, folder in saved_in(self.folder)]


def data_has_changed(folder: Path) -> str:
    """Return the error message for a run whose data has changed."""
    return (
        f"{folder}: the training or validation data has changed since this was trained, or an older kzoo "
        "read it differently: give another folder, or restore the data"
    )


def updates(model: keras.Model) -> int:
    """Return the number of weight updates."""
    return int(ops.convert_to_numpy(model.optimizer.iterations))  # `int` alone fails under tf.distribute


def write_digests(folder: Path):
    """Write the SHA-256 of a folder's files to the folder, in the format of `sha256sum --check`."""
    lines = [f"{sha256(path)}  {path.name}\n" for path in sorted(folder.iterdir())]
    (folder / SUMS).write_text("".join(lines))


def damage(folder: Path) -> str:
    """Return how a folder was damaged after `write_digests`, or "" if it is intact.

    Raises:
        OSError: a file cannot be read, although it may be intact.
    """
    try:
        sums = re.findall(r"([0-9a-f]{64})  ([\w.]+)\n", (folder / SUMS).read_text(errors="replace"))
        if len(sums) < 2:  # the weights, and a checkpoint's state or a language model's result
            return f"{SUMS} is not as it was written"
        for digest, name in sums:
            if sha256(folder / name) != digest:
                return f"{name} is not as it was written"
    except FileNotFoundError as error:
        return f"{Path(error.filename).name} is missing"
    return ""
