"""Keras's `fit`, started where a run stopped, even within an epoch."""

import keras

from kzoo.data.batch_wrappers import RestOfEpoch, WrappedBatches
from kzoo.errors import UserError


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
        batch: int. Number of batches of the next epoch already trained. If all, the epoch is only scored. Not
            all but one, because Keras would infer a fixed shape from a single batch.
        model: compiled.
        batches: `Batches` or `PairBatches`.
        epochs, callbacks, verbose: as in `keras.Model.fit`.

    Raises:
        UserError, OSError: a batch could not be made.
    """
    if verbose and (batch != len(batches) or epoch + 1 < epochs):
        print("compiling …", flush=True)
    how = {"epochs": epochs, "shuffle": False, "verbose": verbose}
    batches = _Remembering(batches)
    try:
        if batch:
            # `fit` calls `on_epoch_end` before its first epoch, so epochs have the order of the next number.
            batches.start_epoch(epoch + 1)
            if batch == len(batches):
                _end_epoch(epoch, model, callbacks)
            else:
                this_epoch = _ThisEpoch()
                rest = RestOfEpoch(batches, batch)
                model.fit(rest, initial_epoch=epoch, callbacks=[*callbacks, this_epoch], **how)
                model.stop_training = this_epoch.was_to_stop
            epoch += 1
        if epoch < epochs and not model.stop_training:
            batches.start_epoch(epoch)
            model.fit(batches, initial_epoch=epoch, callbacks=callbacks, **how)
    except Exception as error:
        if verbose == 1:
            print()  # ends the progress bar's line
        if isinstance(error, UserError | OSError) or not batches.failure:
            raise
        raise batches.failure from None


class _ThisEpoch(keras.callbacks.Callback):
    """Ends `fit` after one epoch, and remembers whether another callback asked to stop.

    Setting `epochs` instead would change the number of epochs that Keras shows.
    """

    def on_epoch_end(self, epoch, logs=None):
        self.was_to_stop, self.model.stop_training = self.model.stop_training, True


def _end_epoch(epoch: int, model: keras.Model, callbacks: list[keras.callbacks.Callback]):
    """End an epoch as `fit` does after its last batch."""
    listed = keras.callbacks.CallbackList(callbacks, model=model)
    listed.on_train_begin()
    listed.on_epoch_begin(epoch)
    listed.on_epoch_end(epoch, model.get_metrics_result())
    listed.on_train_end()


class _Remembering(WrappedBatches):
    """Batches that remember the error of making one; TensorFlow replaces it with its own."""

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__(batches)
        self.failure = None

    def __getitem__(self, index: int):
        try:
            return self.batches[index]
        except (UserError, OSError) as error:
            self.failure = error
            raise
