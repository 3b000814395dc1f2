"""The end of a run: over its last part, the learning rate falls to zero.

Hägele et al. 2024, "Scaling Laws and Compute-Optimal Training Beyond Fixed Training Durations",
https://arxiv.org/abs/2405.18392: a constant rate that falls at the end reaches what a schedule of the whole
run does, and a longer run can start from before the fall.
"""

import time
from collections.abc import Callable

import keras
from keras import ops

from kzoo.models import SGD, Adam
from kzoo.training.checkpoints import Checkpoints

STAIR = 0.01  # the least change of the factor: on JAX, each takes a few milliseconds
# Seconds, and times of a greedy validation, for what follows training: the last validation, the mean of the
# checkpoints, the scores of the search, and of the test set.
LAST_SECONDS, LAST_VALIDATIONS = 20, 6
VALIDATION_SHARE = 0.1  # of the time


class RateFactor:
    """Mixin for optimizers: their rate is multiplied by the variable `rate_factor`, which begins as 1."""

    def build(self, variables):
        if not self.built:
            super().build(variables)
            self.rate_factor = self.add_variable(shape=(), initializer="ones", name="rate_factor")

    def update_step(self, gradient, variable, learning_rate):
        factor = ops.cast(self.rate_factor, learning_rate.dtype)
        super().update_step(gradient, variable, learning_rate * factor)


class CoolingAdam(RateFactor, Adam):
    """`Adam` for a run with a cooldown."""


class CoolingSGD(RateFactor, SGD):
    """`SGD` for a run with a cooldown."""


class Cooldown(keras.callbacks.Callback):
    """Lets the learning rate fall to zero over the last part of a run, and ends the run.

    The run ends after its steps or minutes, whichever are over first. If patience runs out before, the rate
    falls from then on. Logs the minutes since the run began, summed over restarts, and the rate's factor.

    Place it before the callback that saves checkpoints; the model's optimizer has a `RateFactor`.

    Args:
        checkpoints: the run's.
        share: float. The part of the run in which the rate falls; above 0, below 1.
        batches: int. Batches of the whole run if neither minutes nor patience end it.
        per_epoch: int. Batches of an epoch.
        minutes: float. Time of the whole run, until its preset is written; 0: any.
        patience: int. Epochs without a better score after which the rate falls; 0: any number.
        began: float. `time.perf_counter()` at the start of this process's run.
    """

    def __init__(
        self,
        checkpoints: Checkpoints,
        share: float,
        batches: int,
        per_epoch: int,
        minutes: float,
        patience: int,
        began: float,
    ):
        super().__init__()
        self.checkpoints, self.share, self.batches, self.per_epoch = checkpoints, share, batches, per_epoch
        self.minutes, self.patience = minutes, patience
        self._here, self._factor = began, None

    @property
    def seconds(self) -> float:
        """Seconds since the run began, without those between its restarts."""
        return time.perf_counter() - self._here + self._earlier

    @property
    def progress(self) -> float:
        """The part of the run that is over, from 0; 1 or more at its end."""
        batches = self.batches
        if impatient := self.checkpoints.impatient_epoch(self.patience):
            batches = min(batches, round(impatient * self.per_epoch / (1 - self.share)))
        over = self.checkpoints.step / batches
        if not self.minutes:
            return over
        validations = [row["val_seconds"] for row in self.checkpoints.history if "val_seconds" in row]
        # The first takes longer, and so does each restart's: it traces the search.
        usual = LAST_VALIDATIONS * min(validations[1:]) if validations[1:] else sum(validations)
        available = 60 * self.minutes - min(LAST_SECONDS + usual, 30 * self.minutes)
        return max(over, self.seconds / available)

    @property
    def factor(self) -> float:
        """What the rate is multiplied by."""
        return min(1.0, max(0.0, (1 - self.progress) / self.share))

    def resume(self):
        """Take the time from the restored checkpoint; go back to before the fall if the end was moved."""
        self._take_time()
        fallen = float(ops.convert_to_numpy(rate_factor(self.checkpoints.model)))
        if self.checkpoints.before_fall and self.factor > fallen + STAIR:
            self.checkpoints.rewind()
            self._take_time()

    def _take_time(self):
        history = self.checkpoints.history
        self._earlier = self.checkpoints.seconds + (60 * history[-1]["minutes"] if history else 0.0)

    def on_train_begin(self, logs=None):
        self._factor = float(ops.convert_to_numpy(rate_factor(self.model)))

    def on_train_batch_begin(self, batch, logs=None):
        factor, falls = self.factor, self._factor < 1
        if self._factor - factor >= STAIR and (falls or self.checkpoints.may_stop):
            if not falls:
                self.checkpoints.keep_before_fall()
            self._assign(factor)

    def on_train_batch_end(self, batch, logs=None):
        if self.progress >= 1:
            self.model.stop_training = True

    def on_epoch_end(self, epoch, logs=None):
        logs["minutes"] = self.seconds / 60
        logs["rate_factor"] = self._factor

    def _assign(self, factor: float):
        self._factor = factor
        if keras.backend.backend() == "jax":
            self.model.jax_state_sync()  # the next step reads the variables again
        rate_factor(self.model).assign(factor)


def rate_factor(model: keras.Model) -> keras.Variable:
    """Return the variable of a compiled model's optimizer."""
    # An optimizer that scales the loss has the recipe's inside.
    optimizer = getattr(model.optimizer, "inner_optimizer", model.optimizer)
    if not optimizer.built:
        optimizer.build(model.trainable_variables)
    return optimizer.rate_factor


class Occasionally(keras.callbacks.Callback):
    """Calls a scoring callback after the last epoch, and as often as it takes a tenth of the time at most.

    The first two epochs are scored: the first score takes longer than others, as it also traces the search.

    Args:
        scorer: callback that logs scores at the end of an epoch.
        clock: returns the time in seconds.
    """

    def __init__(self, scorer: keras.callbacks.Callback, clock: Callable[[], float] = time.perf_counter):
        super().__init__()
        self.scorer, self.clock = scorer, clock
        self._since, self._seconds = None, 0.0

    def set_model(self, model):
        super().set_model(model)
        self.scorer.set_model(model)

    def on_epoch_end(self, epoch, logs=None):
        waited = None if self._since is None else self.clock() - self._since
        last = self.model.stop_training or epoch + 1 == self.params["epochs"]
        if last or waited is None or waited >= self._seconds * (1 / VALIDATION_SHARE - 1):
            began = self.clock()
            self.scorer.on_epoch_end(epoch, logs)
            first, self._since = self._since is None, self.clock()
            self._seconds = 0.0 if first else self._since - began

    def on_train_begin(self, logs=None):
        self.scorer.on_train_begin(logs)

    def on_train_batch_end(self, batch, logs=None):
        self.scorer.on_train_batch_end(batch, logs)

    def on_train_end(self, logs=None):
        self.scorer.on_train_end(logs)
