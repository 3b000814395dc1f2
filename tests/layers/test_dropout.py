"""Dropout against the hash written with NumPy's unsigned integers, and against the binomial distribution."""

import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from scipy import stats

from kzoo.layers.dropout import Dropout


def masks(layer, shape, calls):
    """Return what `calls` calls keep: bool, `(calls, *shape)`."""
    return np.stack(
        [ops.convert_to_numpy(layer(np.ones(shape, "float32"), training=True)) > 0 for _ in range(calls)]
    )


def lowbias32(x):
    x = np.asarray(x, "uint32").copy()
    with np.errstate(over="ignore"):
        x ^= x >> np.uint32(16)
        x *= np.uint32(0x7FEB352D)
        x ^= x >> np.uint32(15)
        x *= np.uint32(0x846CA68B)
    return x ^ (x >> np.uint32(16))


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(Dropout(0.3), {"inputs": random.normal(size=(2, 5, 8)).astype("float32")}, tmp_path)


def test_drops_what_the_hash_says():
    """The same elements on every backend: the hash is NumPy's here, in unsigned arithmetic."""
    layer = Dropout(0.3, seed=1234)
    kept = masks(layer, (4, 50), 3)
    for call in range(3):
        first = lowbias32(1234)
        second = lowbias32(np.uint32(call) ^ first)
        numbers = lowbias32(lowbias32(np.arange(200, dtype="uint32") ^ first) ^ second)
        # int32 order is uint32 order with the halves changed.
        expected = (numbers ^ np.uint32(2**31)).astype("int64") >= round(0.3 * 2**32)
        np.testing.assert_array_equal(kept[call].ravel(), expected)


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.9])
def test_rate_and_independence(rate):
    """Counts of dropped elements, of pairs of neighbours in each axis and in time: binomial, six sigma."""
    kept = masks(Dropout(rate, seed=7), (32, 64, 16), 8)
    dropped = ~kept
    pairs = [dropped]
    pairs += [
        np.take(dropped, range(1, n), axis) & np.take(dropped, range(n - 1), axis)
        for axis, n in enumerate(dropped.shape)
    ]
    for power, counted in zip((1, 2, 2, 2, 2), pairs, strict=True):
        p = rate**power
        # Overlapping pairs share elements: their variance is less than three times the binomial's.
        spread = np.sqrt(counted.size * p * (1 - p) * (1 if power == 1 else 3))
        assert abs(counted.sum() - counted.size * p) < 6 * spread
    rows = dropped.reshape(-1, 16).sum(axis=1)
    expected = stats.binom.pmf(np.arange(17), 16, rate) * len(rows)
    seen = np.bincount(rows, minlength=17)
    usual = expected > 5
    chi_square = ((seen - expected)[usual] ** 2 / expected[usual]).sum()
    assert chi_square < stats.chi2.ppf(1 - 1e-6, usual.sum())


def test_kept_elements_grow_so_that_the_mean_stays(random):
    x = random.normal(size=(3, 40)).astype("float32")
    output = ops.convert_to_numpy(Dropout(0.2, seed=1)(x, training=True))
    np.testing.assert_allclose(output[output != 0], (x / 0.8)[output != 0], rtol=1e-6)
    assert 0 < (output == 0).sum() < x.size / 2


def test_does_nothing_outside_training_or_at_rate_zero(random):
    x = random.normal(size=(3, 4)).astype("float32")
    np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(0.5)(x)), x)
    np.testing.assert_array_equal(ops.convert_to_numpy(Dropout(0.0)(x, training=True)), x)
    assert not Dropout(0.0).variables  # no random state, of which a run's checkpoints would need one more


def test_layers_and_calls_drop_differently():
    one, two = masks(Dropout(0.5, seed=1), (1000,), 2), masks(Dropout(0.5, seed=2), (1000,), 2)
    for a, b in ((one[0], one[1]), (one[0], two[0]), (one[1], two[0])):
        assert abs((a == b).mean() - 0.5) < 0.1


def test_the_highest_rate_drops():
    """Rounded to 2^-32 it would be 1, which no int32 number reaches."""
    assert not masks(Dropout(1 - 1e-11, seed=7), (100,), 1).any()
