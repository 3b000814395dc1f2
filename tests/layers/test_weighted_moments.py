"""Weighted moments against NumPy's of rows that stand there so many times."""

import numpy as np
from keras import ops

from kzoo.layers.normalization import weighted_moments


def test_equal_those_of_repeated_rows(random):
    rows, counts = random.normal(size=(6, 3)).astype("float32"), np.array([1, 0, 3, 2, 0, 1])
    moments = weighted_moments(ops.convert_to_tensor(rows), ops.convert_to_tensor(counts))
    mean, variance = (ops.convert_to_numpy(moment) for moment in moments)
    repeated = np.repeat(rows, counts, axis=0)
    np.testing.assert_allclose(mean, repeated.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, repeated.var(axis=0), rtol=1e-5)


def test_are_zero_where_no_row_counts(random):
    rows = ops.convert_to_tensor(random.normal(size=(4, 3)).astype("float32"))
    for moment in weighted_moments(rows, ops.zeros(4)):
        np.testing.assert_array_equal(ops.convert_to_numpy(moment), np.zeros(3))
