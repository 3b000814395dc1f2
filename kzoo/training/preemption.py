"""SIGTERM and Ctrl-C: the run saves its state and ends; the same command resumes it."""

import contextlib
import signal

import keras

from kzoo.training.checkpoints import Checkpoints
from kzoo.training.signals import Told, handled


class Preemption(keras.callbacks.Callback):
    """Saves and stops training at the end of the batch in which a signal arrives.

    SIGTERM, which schedulers send before they take a machine away, ends the run with exit status 0. Ctrl-C
    ends it as always, with `KeyboardInterrupt`; pressed again, at once. Outside training steps, such as while
    translations are scored, the run stops without waiting. Place it last among the callbacks.

    Args:
        checkpoints: the callback that saves.
    """

    def __init__(self, checkpoints: Checkpoints):
        super().__init__()
        self.checkpoints = checkpoints
        self._waits, self._received = False, None

    @contextlib.contextmanager
    def listening(self):
        """Receive the signals in the block."""
        with handled(self._receive):
            try:
                yield self
            except Told:
                self._save_and_leave()

    def _receive(self, number, frame):
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = self._received or number
        if not self._waits and self._leaves_alone:
            self._stop()

    @property
    def _leaves_alone(self) -> bool:
        """Whether it may stop at once: several workers stop together, at a step at which they ask."""
        return bool(self._received) and self.checkpoints.strategy.workers == 1

    def _stop(self):
        self._waits = True
        raise Told

    def _save_and_leave(self):
        epoch, batch = self.checkpoints.epoch, self.checkpoints.batch
        if batch:
            self.checkpoints.save()
        where = f"after {epoch} epochs and {batch} batches, which are saved"
        if not (epoch or batch):
            where = "before anything was trained, or what was trained before was read"
        print(f"\n{signal.Signals(self._received).name}: stopped {where}; run the same command to resume")
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(0)

    def on_train_begin(self, logs=None):
        self._waits = True

    def on_train_batch_end(self, batch, logs=None):
        told = bool(self._received)
        if self.checkpoints.may_stop and self.checkpoints.strategy.any_worker(told, self.checkpoints.step):
            self._received = self._received or signal.SIGTERM  # which another worker has received
            self._stop()

    def on_train_end(self, logs=None):
        self.leave_at_once()

    def leave_at_once(self):
        """From now on, let a signal end the run at once."""
        self._waits = False
        if self._leaves_alone:
            self._stop()

    def scoring(self, score: keras.callbacks.Callback) -> list[keras.callbacks.Callback]:
        """Return callbacks that let a signal end a score after an epoch at once: nothing of it is kept."""
        before = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.leave_at_once())
        after = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.on_train_begin())
        return [before, score, after]

    @contextlib.contextmanager
    def saving(self, checkpoints: Checkpoints):
        """Save to other checkpoints if a signal ends the block."""
        own, self.checkpoints = self.checkpoints, checkpoints
        yield
        self.checkpoints = own
