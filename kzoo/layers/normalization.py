"""Batch normalization of rows that count several times or not at all, over all replicas."""

import keras
from keras import ops

from kzoo.layers.layer import Layer


@keras.saving.register_keras_serializable("kzoo")
class MaskedBatchNormalization(Layer):
    """Batch normalization with statistics over the rows that count, on all replicas.

    Keras's own layer counts rows that only fill a batch as images, unless it is given a mask, which it does
    not share among replicas.

    Args:
        momentum: float. Share of the stored statistics kept at each batch. Defaults to `0.9`.
        epsilon: float. Added to the variance. Defaults to `1e-3`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, …, F)`.
        present: bool `(B,)`. `True` at rows that count; all by default.
        training: bool. Whether to normalize by the batch's statistics and update the stored ones.

    Returns:
        `(B, …, F)`.

    Example:

    >>> MaskedBatchNormalization()(np.zeros((2, 8, 8, 3)), present=np.array([True, False])).shape
    (2, 8, 8, 3)

    Reference:
        Ioffe and Szegedy 2015, "Batch Normalization". https://arxiv.org/abs/1502.03167
    """

    def __init__(self, momentum: float = 0.9, epsilon: float = 1e-3, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon

    def build(self, inputs_shape):
        F, kept = (inputs_shape[-1],), {"dtype": "float32", "autocast": False}  # in any precision
        self.gamma = self.add_weight(F, "ones", **kept, name="gamma")
        self.beta = self.add_weight(F, "zeros", **kept, name="beta")
        self.moving_mean = self.add_weight(F, "zeros", **kept, trainable=False, name="moving_mean")
        self.moving_variance = self.add_weight(F, "ones", **kept, trainable=False, name="moving_variance")

    def call(self, inputs, present=None, training: bool | None = None):
        x = ops.cast(inputs, "float32")
        moments = stored = self.moving_mean, self.moving_variance
        if training and self.trainable:
            moments = weighted_moments(ops.reshape(x, (-1, x.shape[-1])), self._counts(x, present))
            move_towards(stored, moments, self.momentum)
        return ops.cast(normalized(x, moments, self.gamma, self.beta, self.epsilon), self.compute_dtype)

    def _counts(self, x, present):
        """Return whether each position of each row counts, `(B·N,)`."""
        counts = ops.ones_like(ops.reshape(x, (ops.shape(x)[0], -1, x.shape[-1]))[..., 0])  # (B, N)
        if present is not None:
            counts *= ops.cast(present, "float32")[:, None]
        return ops.reshape(counts, (-1,))


def weighted_moments(features, counts):
    """Return the mean and variance `(F,)` of `features` `(N, F)`, row n counted `counts[n]` times.

    Computed over all replicas that share a batch; zeros if no row counts.
    """
    counts = ops.cast(counts, features.dtype)[:, None]
    total = mean_over_replicas(ops.sum(counts))

    def mean(x):
        return ops.divide_no_nan(mean_over_replicas(ops.sum(counts * x, axis=0)), total)

    center = mean(features)
    return center, mean(ops.square(features - center))


def normalized(features, moments, gamma, beta, epsilon: float = 1e-3):
    """Return `features` `(…, F)` normalized by `moments`, then scaled by `gamma` and shifted by `beta`."""
    mean, variance = moments
    return (features - mean) * ops.rsqrt(variance + epsilon) * gamma + beta


def move_towards(stored, moments, momentum: float):
    """Move the stored mean and variance towards a batch's; they keep the share `momentum` of their values."""
    for variable, new in zip(stored, moments, strict=True):
        variable.assign(momentum * variable + (1 - momentum) * new)


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
