"""Alone, a device's mean over replicas is what it has; several are in tests/training/test_strategies.py."""

import numpy as np
from keras import ops

from kzoo.layers.normalization import mean_over_replicas


def test_without_replicas_nothing_changes(random):
    for shape in ((), (4,), (2, 3)):
        x = np.float32(random.normal(size=shape))
        found = mean_over_replicas(ops.convert_to_tensor(x))
        np.testing.assert_array_equal(ops.convert_to_numpy(found), x)
