"""SIGTERM and Ctrl-C: the run saves its state and ends; the same command resumes it."""

import contextlib
import signal
import threading

import keras

from kzoo.training.checkpoints import Checkpoints
from kzoo.training.signals import Told

SIGNALS = (signal.SIGTERM, signal.SIGINT)


class Preemption(keras.callbacks.Callback):
    """Saves and stops training at the end of the batch in which a signal arrives.

    SIGTERM, which schedulers send before they take a machine away, ends the run with exit status 0. Ctrl-C
    ends it as always, with `KeyboardInterrupt`; pressed again, at once. Outside training steps, such as while
    translations are scored, the run stops without waiting. A context manager; place it last among the
    callbacks.

    Args:
        checkpoints: the callback that saves.
    """

    def __init__(self, checkpoints: Checkpoints):
        super().__init__()
        self.checkpoints = checkpoints
        self._waits, self._received, self._earlier = False, None, {}

    def __enter__(self):
        if threading.current_thread() is threading.main_thread():  # no other may set signal handlers
            self._earlier = {number: signal.signal(number, self._receive) for number in SIGNALS}
        return self

    def __exit__(self, kind, *error):
        try:
            if kind is Told:
                self._save_and_leave()
        finally:
            for number, action in self._earlier.items():
                signal.signal(number, action)

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
        self._waits = False
        if self._leaves_alone:
            self._stop()

    @contextlib.contextmanager
    def saving(self, checkpoints: Checkpoints):
        """Save to other checkpoints if a signal ends the block."""
        own, self.checkpoints = self.checkpoints, checkpoints
        yield
        self.checkpoints = own

    @contextlib.contextmanager
    def at_once(self):
        """Let a signal end the block at once."""
        self._waits = False
        if self._leaves_alone:
            self._stop()
        yield
        self._waits = True


class Interruptible(keras.callbacks.Callback):
    """Wraps a callback whose work after an epoch a signal may end at once: nothing of it is kept.

    Args:
        callback: such as one that scores translations.
        preemption: receives the signals.
    """

    def __init__(self, callback: keras.callbacks.Callback, preemption: Preemption):
        super().__init__()
        self.callback, self.preemption = callback, preemption

    def set_model(self, model):
        super().set_model(model)
        self.callback.set_model(model)

    def on_epoch_end(self, epoch, logs=None):
        with self.preemption.at_once():
            self.callback.on_epoch_end(epoch, logs)
