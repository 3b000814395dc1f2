"""What devices that share a batch must agree on, for their losses to add up to the whole batch's."""

import keras
from keras import ops


def mean_over_replicas(x):
    """Return the mean of a tensor over the replicas that share a batch; without any, the tensor.

    `tf.distribute` runs a step on each replica's rows and takes the mean of the replicas' losses. That is
    the batch's loss only if a loss which is a mean over words, or over sentences, divides by what the
    replicas have on the average, not by its own count. JAX computes with the whole batch wherever its rows
    lie: there is nothing to do.

    Args:
        x: float32 tensor of any shape, such as a count.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    # Keras's one operation that looks across replicas. They exchange the sum, one row each.
    return ops.moments(ops.expand_dims(x, 0), axes=[0], synchronized=True)[0]
