"""Masked batch normalization against Keras's own, and rows that do not count."""

import keras
import numpy as np
from check_layer import check_layer
from keras import ops

from kzoo.layers.normalization import MaskedBatchNormalization


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
