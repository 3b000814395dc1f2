"""Masked batch normalization against Keras's own; weighted moments against NumPy's of repeated rows."""

import keras
import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers.normalization import MaskedBatchNormalization, mean_over_replicas, weighted_moments


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(
        MaskedBatchNormalization(), {"inputs": random.normal(size=(3, 4, 5)).astype("float32")}, tmp_path
    )


def test_is_batch_normalization_of_the_rows_that_count(random):
    images = random.normal(2, 3, size=(5, 4, 4, 3)).astype("float32")
    counting = np.array([True, True, False, True, False])
    layer, peer = MaskedBatchNormalization(), keras.layers.BatchNormalization(momentum=0.9)
    for _ in range(2):
        result = ops.convert_to_numpy(layer(images, present=counting, training=True))
        expected = ops.convert_to_numpy(peer(images[counting], training=True))
    np.testing.assert_allclose(result[counting], expected, atol=1e-4)
    results = [ops.convert_to_numpy(each(images, training=False)) for each in (layer, peer)]
    np.testing.assert_allclose(*results, atol=1e-4)


def test_counts_all_rows_without_a_mask(random):
    images = random.normal(size=(2, 6, 3)).astype("float32")
    result = ops.convert_to_numpy(MaskedBatchNormalization()(images, training=True))
    expected = (images - images.mean((0, 1))) / np.sqrt(images.var((0, 1)) + 1e-3)
    np.testing.assert_allclose(result, expected, atol=1e-4)


def test_weighted_moments_equal_those_of_repeated_rows(random):
    rows, counts = random.normal(size=(6, 3)).astype("float32"), np.array([1, 0, 3, 2, 0, 1])
    moments = weighted_moments(ops.convert_to_tensor(rows), ops.convert_to_tensor(counts))
    mean, variance = (ops.convert_to_numpy(moment) for moment in moments)
    repeated = np.repeat(rows, counts, axis=0)
    np.testing.assert_allclose(mean, repeated.mean(axis=0), rtol=1e-5)
    np.testing.assert_allclose(variance, repeated.var(axis=0), rtol=1e-5)


def test_weighted_moments_are_zero_where_no_row_counts(random):
    rows = ops.convert_to_tensor(random.normal(size=(4, 3)).astype("float32"))
    for moment in weighted_moments(rows, ops.zeros(4)):
        np.testing.assert_array_equal(ops.convert_to_numpy(moment), np.zeros(3))


def test_without_replicas_their_mean_is_the_tensor_itself(random):
    """Several replicas are in tests/training/test_strategies.py."""
    for shape in ((), (4,), (2, 3)):
        x = np.float32(random.normal(size=shape))
        found = mean_over_replicas(ops.convert_to_tensor(x))
        np.testing.assert_array_equal(ops.convert_to_numpy(found), x)
