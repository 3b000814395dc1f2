"""Losses that are not finite: found by all workers together, reported with the step where they began."""

import math

import keras
import numpy as np
from keras import ops

from kzoo.errors import UserError

# Steps whose losses are checked together. A worker that stopped as soon as its own rows' loss was not finite
# would leave the others waiting; one step later, the weights have spread it to all.
EVERY = 16


class Losses:
    """The losses of the latest steps, kept until they are checked.

    Keras logs the mean loss of an epoch so far: once it is NaN or infinite, it stays so.

    Attributes:
        last: (step, epoch, batch) of the last loss.
    """

    def __init__(self):
        self._unseen, self.last = [], None

    def add(self, step: int, epoch: int, batch: int, loss) -> bool:
        """Keep a step's loss, and return whether there are enough losses to check.

        Args:
            step, epoch, batch: int. The step's number, its epoch's, and its number in the epoch, from 1.
            loss: the mean loss of the epoch so far, from `fit`'s logs.
        """
        self.last = (step, epoch, batch)
        self._unseen.append((self.last, loss))
        return len(self._unseen) >= EVERY

    def first_not_finite(self) -> tuple | None:
        """Check the losses since the last check; return where the first one is that is NaN or infinite."""
        unseen, self._unseen = self._unseen, []
        if not unseen or math.isfinite(unseen[-1][1]):
            return None
        return next(where for where, loss in unseen if not math.isfinite(loss))


def finite_weights(model: keras.Model) -> bool:
    """Return whether all trainable weights are finite: a step's loss is of the weights before its update."""
    return all(np.isfinite(ops.convert_to_numpy(w)).all() for w in model.trainable_variables)


def not_finite(what: str, where: tuple, model: keras.Model, checkpoint: str) -> UserError:
    """Return the error that ends a training.

    Args:
        what: such as `"the loss"`.
        where: step, epoch and batch, as `Losses` counts them.
        model: its learning rate is named.
        checkpoint: name of the last checkpoint; empty if there is none.
    """
    step, epoch, batch = where
    kept = f"checkpoint {checkpoint} from before it is kept" if checkpoint else "there is no checkpoint yet"
    return UserError(
        f"{what} is not finite at step {step:,} (epoch {epoch}, batch {batch}), learning rate "
        f"{_rate(model.optimizer, step):.3g}: training stopped, {kept}; a lower rate or a clip_norm may help"
    )


def _rate(optimizer: keras.optimizers.Optimizer, step: int) -> float:
    """Return the learning rate of a step, which may be some steps ago."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # where the loss is scaled
    rate = keras.saving.deserialize_keras_object(optimizer.get_config()["learning_rate"])
    return float(ops.convert_to_numpy(rate(step - 1) if callable(rate) else rate))
