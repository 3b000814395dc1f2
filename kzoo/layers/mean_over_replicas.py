"""The mean over replicas: lets the losses of replicas that share a batch add up to the whole batch's."""

import keras
from keras import ops


def mean_over_replicas(x):
    """Return the mean of a tensor over the replicas that share a batch; without replicas, the tensor itself.

    `tf.distribute` runs a step on each replica's rows and takes the mean of the replicas' losses. For a loss
    that is a mean over tokens or sentences, this is the batch's loss only if each replica divides by the
    replicas' average count, not by its own. JAX computes with the whole batch wherever its rows are, so
    there the tensor is returned as it is.

    Args:
        x: float32 tensor of any shape, such as a count.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    # The only Keras operation that works across replicas. They exchange the sum, one row each.
    return ops.moments(ops.expand_dims(x, 0), axes=[0], synchronized=True)[0]
