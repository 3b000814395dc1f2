"""Mean and variance of rows that count several times, or not at all."""

from keras import ops

from kzoo.layers.mean_over_replicas import mean_over_replicas


def weighted_moments(features, counts):
    """Return the mean and variance `(F,)` of `features` `(N, F)`, row n counted `counts[n]` times.

    Over all replicas that share a batch; zeros where no row counts.
    """
    counts = ops.cast(counts, features.dtype)[:, None]
    total = mean_over_replicas(ops.sum(counts))

    def mean(x):
        return ops.divide_no_nan(mean_over_replicas(ops.sum(counts * x, axis=0)), total)

    center = mean(features)
    return center, mean(ops.square(features - center))
