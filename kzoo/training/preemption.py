"""SIGTERM and Ctrl-C: the run saves its state and ends, and the same command resumes it."""

import contextlib
import signal
import threading
from collections.abc import Iterator

import keras

from kzoo.training.checkpoints import Checkpoints


class StopRequested(BaseException):
    """A signal asks the run to stop: raised in the running code, handled by `Preemption.listening`."""


class Preemption(keras.callbacks.Callback):
    """Saves and stops training after the batch in which a signal arrives.

    SIGTERM, which schedulers send before they take a machine away, ends the run with exit status 0. Ctrl-C
    ends it with `KeyboardInterrupt`; a second Ctrl-C ends it at once. Outside training steps, such as while
    translations are scored, a run of one worker stops at once. Place it last among the callbacks.

    Attributes:
        checkpoints: the callback that saves; `None` while there is nothing to save.
    """

    def __init__(self):
        super().__init__()
        self.checkpoints: Checkpoints | None = None
        self._in_step, self._received = False, None

    @contextlib.contextmanager
    def listening(self) -> Iterator[None]:
        """Receive the signals in the block. In other threads than the main one, do nothing."""
        main = threading.current_thread() is threading.main_thread()
        signals = (signal.SIGTERM, signal.SIGINT) if main else ()
        earlier = {number: signal.signal(number, self._receive) for number in signals}
        try:
            yield
        except StopRequested:
            self._save_and_exit()
        finally:
            for number, action in earlier.items():
                signal.signal(number, action)

    def _receive(self, number, frame):
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = self._received or number
        if not self._in_step:
            self._stop_if_alone()

    def _stop_if_alone(self):
        """Stop at once after a signal. Several workers stop together instead, after a step."""
        if self._received and (self.checkpoints is None or self.checkpoints.strategy.workers == 1):
            self._stop()

    def _stop(self):
        self._in_step = True  # a further SIGTERM must not interrupt saving
        raise StopRequested

    def _save_and_exit(self):
        where = "before the first step, or before the last checkpoint was read"
        if self.checkpoints and (self.checkpoints.epoch or self.checkpoints.batch):
            epoch, batch = self.checkpoints.epoch, self.checkpoints.batch
            if batch:
                self.checkpoints.save()
            where = f"after {epoch} epochs and {batch} batches, which are saved"
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
