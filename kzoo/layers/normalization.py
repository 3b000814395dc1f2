"""Batch normalization with weighted rows, synchronized across replicas."""

from typing import Any, NamedTuple

import keras
from keras import ops

from kzoo.layers.layer import Layer


class Normalization(NamedTuple):
    """The weights of a batch normalization: scale, shift, stored mean and stored variance, `(F,)` each."""

    gamma: Any
    beta: Any
    mean: Any
    variance: Any

    @classmethod
    def of(cls, layer: keras.layers.Layer, width: int, prefix: str = "") -> "Normalization":
        """Add the weights for F = `width` features to a layer, and return them."""
        float32 = {"dtype": "float32", "autocast": False}  # regardless of the layer's precision
        return cls(
            layer.add_weight((width,), "ones", **float32, name=f"{prefix}gamma"),
            layer.add_weight((width,), "zeros", **float32, name=f"{prefix}beta"),
            layer.add_weight((width,), "zeros", **float32, trainable=False, name=f"{prefix}moving_mean"),
            layer.add_weight((width,), "ones", **float32, trainable=False, name=f"{prefix}moving_variance"),
        )

    def normalize(self, features, moments, epsilon: float = 1e-3):
        """Return `features` `(…, F)` normalized by `moments`, a mean and a variance, scaled and shifted."""
        mean, variance = moments
        return (features - mean) * ops.rsqrt(variance + epsilon) * self.gamma + self.beta

    @property
    def stored(self) -> tuple:
        """The stored mean and variance."""
        return self.mean, self.variance

    def move_towards(self, moments, momentum: float):
        """Update the stored moments to momentum · stored + (1 - momentum) · `moments`."""
        for variable, new in zip(self.stored, moments, strict=True):
            variable.assign(momentum * variable + (1 - momentum) * new)


@keras.saving.register_keras_serializable("kzoo")
class MaskedBatchNormalization(Layer):
    """Batch normalization with statistics over the rows that are `present`, on all replicas.

    `keras.layers.BatchNormalization` includes rows that only pad a batch, unless it gets a mask; its masked
    statistics are not synchronized across replicas.

    Args:
        momentum: float. Share of the stored statistics kept at each batch. Defaults to `0.9`.
        epsilon: float. Added to the variance. Defaults to `1e-3`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, …, F)`.
        present: bool `(B,)`. `False` at rows that only pad the batch. All `True` by default.
        training: bool. Whether to normalize by the batch's statistics and update the stored ones.

    Returns:
        `(B, …, F)`.

    Reference:
        Ioffe and Szegedy 2015, "Batch Normalization". https://arxiv.org/abs/1502.03167
    """

    def __init__(self, momentum: float = 0.9, epsilon: float = 1e-3, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon

    def build(self, inputs_shape):
        self.norm = Normalization.of(self, inputs_shape[-1])

    def call(self, inputs, present=None, training: bool | None = None):
        x, moments = ops.cast(inputs, "float32"), self.norm.stored
        if training and self.trainable:
            counts = ops.ones_like(x[..., 0])  # (B, …)
            if present is not None:
                counts *= ops.reshape(ops.cast(present, "float32"), (-1, *[1] * (len(x.shape) - 2)))
            moments = weighted_moments(ops.reshape(x, (-1, x.shape[-1])), ops.reshape(counts, (-1,)))
            self.norm.move_towards(moments, self.momentum)
        return ops.cast(self.norm.normalize(x, moments, self.epsilon), self.compute_dtype)


def weighted_moments(features, counts):
    """Return the mean and variance `(F,)` of `features` `(N, F)`, counting row n `counts[n]` times.

    Computed over all replicas that share a batch; zeros if all counts are 0.
    """
    counts = ops.cast(counts, features.dtype)[:, None]
    total = mean_over_replicas(ops.sum(counts))

    def mean(x):
        return ops.divide_no_nan(mean_over_replicas(ops.sum(counts * x, axis=0)), total)

    center = mean(features)
    return center, mean(ops.square(features - center))


def mean_over_replicas(x):
    """Return the mean of a tensor over the replicas that share a batch; without replicas, the tensor itself.

    `tf.distribute` runs a step on each replica's rows and takes the mean of the replicas' losses. For a loss
    that is a mean over tokens or sentences, this is the batch's loss only if each replica divides by the
    replicas' average count, not by its own. JAX computes on the whole batch even if it is sharded, so there
    the tensor is returned unchanged.
    """
    if keras.backend.backend() != "tensorflow":
        return x
    # The only Keras operation that works across replicas. Each replica contributes one row.
    return ops.moments(ops.expand_dims(x, 0), axes=[0], synchronized=True)[0]
