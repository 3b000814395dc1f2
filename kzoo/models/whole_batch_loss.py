"""The loss of a batch that is split among several devices: the same as on one device."""

import keras
from keras import ops

from kzoo.layers.normalization import mean_over_replicas
from kzoo.models.label_smoothed_cross_entropy import token_weights


class WholeBatchLoss:
    """Mixin: the loss does not depend on how a batch is split among replicas.

    `tf.distribute` lets each replica compute the loss of its rows, and takes the mean of these losses. If the
    loss is a mean over tokens and one replica has few of them, these few count too much. So each replica's
    loss, penalties included, is weighted by its share of the tokens or sentences that the mean is over:
    `loss.count(weights)`, if the compiled loss is a `keras.losses.Loss` with this method. Penalties are means
    over sentences; a model with penalties needs a loss that is a mean over sentences too.

    The weighting is done here, at the end, and not in the loss: a replica that waits for others before Keras
    has collected its penalties would also get theirs.
    """

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        # A loss's name and a list of losses have a `count` too, Python's own.
        if not (isinstance(self.loss, keras.losses.Loss) and hasattr(self.loss, "count")):
            return loss
        weights = token_weights(y) if sample_weight is None else sample_weight
        own = self.loss.count(ops.cast(weights, "float32"))
        return loss * ops.cast(ops.divide_no_nan(own, mean_over_replicas(own)), loss.dtype)
