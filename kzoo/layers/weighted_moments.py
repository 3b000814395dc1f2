"""The steps of batch normalization, for rows that count several times or not at all."""

from keras import ops

from kzoo.layers.mean_over_replicas import mean_over_replicas


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
