"""SIGTERM and Ctrl-C: the run saves its state and ends, and the same command resumes it."""

import contextlib
import signal

import keras

from kzoo.training.checkpoints import Checkpoints
from kzoo.training.signals import StopRequested, handled


class Preemption(keras.callbacks.Callback):
    """Saves and stops training after the batch in which a signal arrives.

    SIGTERM, which schedulers send before they take a machine away, ends the run with exit status 0. Ctrl-C
    ends it with `KeyboardInterrupt`; a second Ctrl-C ends it at once. Outside training steps, such as while
    translations are scored, a run of one worker stops at once. Place it last among the callbacks.

    Args:
        checkpoints: the callback that saves.
    """

    def __init__(self, checkpoints: Checkpoints):
        super().__init__()
        self.checkpoints = checkpoints
        self._in_step, self._received = False, None

    @contextlib.contextmanager
    def listening(self):
        """Receive the signals in the block."""
        with handled(self._receive):
            try:
                yield self
            except StopRequested:
                self._save_and_exit()

    def _receive(self, number, frame):
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = self._received or number
        if not self._in_step:
            self._stop_if_alone()

    def _stop_if_alone(self):
        """Stop at once after a signal. Several workers stop together instead, after a step."""
        if self._received and self.checkpoints.strategy.workers == 1:
            self._stop()

    def _stop(self):
        self._in_step = True  # a further SIGTERM must not interrupt saving
        raise StopRequested

    def _save_and_exit(self):
        epoch, batch = self.checkpoints.epoch, self.checkpoints.batch
        if batch:
            self.checkpoints.save()
        where = f"after {epoch} epochs and {batch} batches, which are saved"
        if not (epoch or batch):
            where = "before the first step, or before the last checkpoint was read"
        print(f"\n{signal.Signals(self._received).name}: stopped {where}; run the same command to resume")
        if self._received == signal.SIGINT:
            raise KeyboardInterrupt
        raise SystemExit(0)

    def on_train_begin(self, logs=None):
        self._in_step = True

    def on_train_batch_end(self, batch, logs=None):
        received, step = bool(self._received), self.checkpoints.step
        if self.checkpoints.may_stop and self.checkpoints.strategy.any_worker(received, step):
            self._received = self._received or signal.SIGTERM  # another worker has received it
            self._stop()

    def on_train_end(self, logs=None):
        self._in_step = False
        self._stop_if_alone()

    def scoring(self, score: keras.callbacks.Callback) -> list[keras.callbacks.Callback]:
        """Return callbacks around an epoch's scoring, which a signal may end at once: it saves nothing."""
        before = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.on_train_end())
        after = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.on_train_begin())
        return [before, score, after]

    @contextlib.contextmanager
    def saving(self, checkpoints: Checkpoints):
        """Save to other checkpoints while the block runs."""
        own, self.checkpoints = self.checkpoints, checkpoints
        yield
        self.checkpoints = own  # but not after a signal, which is still to be saved to the others
