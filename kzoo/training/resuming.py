"""Stopping and resuming: on a signal, the run is saved and ends; `fit_from` continues where it stopped."""

import contextlib
import signal
import threading
from collections.abc import Iterator
from typing import Self

import keras

from kzoo.data.wrapped_batches import ResumedBatches
from kzoo.errors import UserError
from kzoo.models.fitting import adapted
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.compiling import compile_shapes
from kzoo.training.strategies import Strategy


class StopRequested(BaseException):
    """Raised in the running code when a signal arrives; `Preemption` handles it."""


class Preemption(keras.callbacks.Callback):
    """Saves and stops training after the batch in which a signal arrives.

    SIGTERM, which schedulers send before they reclaim a machine, ends the run with exit status 0. Ctrl-C
    ends it with `KeyboardInterrupt`; a second Ctrl-C ends it at once. Outside training steps, such as during
    scoring, a run of one worker stops at once. Place it last among the callbacks.

    Args:
        strategy: the run's.

    Attributes:
        checkpoints: the callback that saves; `None` while there is nothing to save.
    """

    def __init__(self, strategy: Strategy):
        super().__init__()
        self.strategy, self.checkpoints = strategy, None
        self._in_step, self._received, self._earlier = False, None, {}
        self._where = "before the first step, or before the last checkpoint was read"

    @contextlib.contextmanager
    def listening(self) -> Iterator[Self]:
        """Handle signals during the block. Does nothing outside the main thread."""
        main = threading.current_thread() is threading.main_thread()
        signals = [signal.SIGTERM] if main else []
        if main and signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # background jobs of scripts ignore it
            signals.append(signal.SIGINT)
        self._earlier = {number: signal.signal(number, self._receive) for number in signals}
        try:
            yield self
        except StopRequested:
            name = signal.Signals(self._received).name
            print(f"\n{name}: stopped {self._where}; run the same command to resume")
            if self._received == signal.SIGINT:
                raise KeyboardInterrupt from None
            raise SystemExit(0) from None
        finally:
            for number, action in self._earlier.items():
                signal.signal(number, action)

    @contextlib.contextmanager
    def saving(self, checkpoints: Checkpoints) -> Iterator[None]:
        """Save with these checkpoints if a signal stops the block."""
        outer, self.checkpoints = self.checkpoints, checkpoints
        try:
            yield
        except StopRequested:
            if checkpoints.epoch or checkpoints.batch:
                epoch, batch = checkpoints.epoch, checkpoints.batch
                if batch:
                    checkpoints.save()
                self._where = f"after {epoch} epochs and {batch} batches, which are saved"
            raise
        finally:
            self.checkpoints = outer

    def _receive(self, number, frame):
        if self.strategy.workers > 1 and self.checkpoints is None:
            # Nothing to save, and the others may not be told: stop as if nobody listened.
            signal.signal(number, self._earlier[number])
            signal.raise_signal(number)
        if self._received and number == signal.SIGINT:
            raise KeyboardInterrupt
        self._received = self._received or number
        if not self._in_step:
            self._stop_single_worker()

    def _stop_single_worker(self):
        """After a signal, stop at once if there is one worker. Several workers stop together after a step."""
        if self._received and self.strategy.workers == 1:
            self._stop()

    def _stop(self):
        self._in_step = True  # a further SIGTERM must not interrupt saving
        raise StopRequested

    def on_train_begin(self, logs=None):
        self._in_step = True

    def on_train_batch_end(self, batch, logs=None):
        received, step = bool(self._received), self.checkpoints.step
        if self.checkpoints.may_stop and self.strategy.any_worker(received, step):
            self._received = self._received or signal.SIGTERM  # another worker has received it
            self._stop()

    def on_train_end(self, logs=None):
        self._in_step = False
        self._stop_single_worker()

    def scoring(self, score: keras.callbacks.Callback) -> list[keras.callbacks.Callback]:
        """Wrap the scoring callback so that a signal stops scoring at once: it has nothing to save."""
        before = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.on_train_end())
        after = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: self.on_train_begin())
        return [before, score, after]


def fit_from(
    epoch: int,
    batch: int,
    model: keras.Model,
    batches: keras.utils.PyDataset,
    epochs: int,
    callbacks: list[keras.callbacks.Callback],
    verbose: str | int,
):
    """Train from a given batch of an epoch, as if the epochs and batches before it had just been trained.

    Args:
        epoch: int. Number of epochs already trained and scored.
        batch: int. Number of batches of the next epoch already trained. If all, the epoch is only scored. All
            but one is not allowed: Keras would infer a fixed shape from a single batch.
        model: compiled.
        batches: `Batches`, `ShardedBatches` or `PairBatches`, or batches that wrap them.
        epochs, callbacks, verbose: as in `keras.Model.fit`.

    Raises:
        UserError, OSError: a batch could not be made.
    """
    if batch != len(batches) or epoch + 1 < epochs:
        if verbose:
            print("compiling …", flush=True)
        compile_shapes(model, batches)
    how = {"epochs": epochs, "shuffle": False, "verbose": verbose}
    batches, shown = ResumedBatches(batches), [Progress()] if verbose else []
    try:
        if batch == len(batches):
            _end_epoch(epoch, model, callbacks, epochs=epochs, steps=len(batches))
        elif batch:
            this_epoch = _ThisEpoch()
            batches.start_epoch(epoch)
            batches.first = batch
            model.fit(
                adapted(batches), initial_epoch=epoch, callbacks=[*callbacks, this_epoch, *shown], **how
            )
            batches.first = 0
            model.stop_training = this_epoch.was_to_stop
        epoch += bool(batch)
        if epoch < epochs and not model.stop_training:
            batches.start_epoch(epoch)
            model.fit(adapted(batches), initial_epoch=epoch, callbacks=[*callbacks, *shown], **how)
    except Exception as error:
        if verbose == 1:
            print()  # ends the progress bar's line
        if isinstance(error, UserError | OSError) or not batches.failure:
            raise
        raise batches.failure from None


class Progress(keras.callbacks.ProgbarLogger):
    """Keras's progress, but an epoch that ends early is shown with the batches that it had, not with all."""

    def on_epoch_end(self, epoch, logs=None):
        self.progbar.update(self.seen, list((logs or {}).items()), finalize=True)


class _ThisEpoch(keras.callbacks.Callback):
    """Ends `fit` after one epoch, and remembers whether another callback asked to stop.

    Setting `epochs` instead would change the number of epochs that Keras shows.
    """

    def on_epoch_end(self, epoch, logs=None):
        self.was_to_stop, self.model.stop_training = self.model.stop_training, True


def _end_epoch(epoch: int, model: keras.Model, callbacks: list[keras.callbacks.Callback], **params):
    """End an epoch as `fit` does after its last batch; `params` are those of the callbacks."""
    listed = keras.callbacks.CallbackList(callbacks, model=model, **params)
    listed.on_train_begin()
    listed.on_epoch_begin(epoch)
    listed.on_epoch_end(epoch, model.get_metrics_result())
    listed.on_train_end()
