"""The numbers behind the pictures of positions, each against a computation of its own."""

import math

import numpy as np
import pytest
from scipy.special import eval_legendre
from scipy.stats import pearsonr

from kzoo.positions import pope_table, sine_table
from training.pope.figures import correlation_curves
from training.pope.positions import (
    POSITIONS,
    correlation,
    first_high_dimension,
    mean_by_distance,
    mutual_information,
)


def test_sine_encoding_is_the_formula():
    encodings = sine_table(40, 12)
    for position in (0, 1, 7, 39):
        for pair in range(6):
            angle = position / 10000 ** (2 * pair / 12)
            assert encodings[position, 2 * pair] == pytest.approx(math.sin(angle), abs=1e-12)
            assert encodings[position, 2 * pair + 1] == pytest.approx(math.cos(angle), abs=1e-12)


def test_pope_encoding_agrees_with_scipy():
    points = -1 + 2 * np.arange(64) / 64
    expected = eval_legendre(np.arange(300)[:, None], points)
    np.testing.assert_allclose(pope_table(300, 64), expected, atol=1e-10)


def test_normalized_pope_is_orthonormal_on_a_fine_grid():
    width = 20000
    encodings = pope_table(12, width, normalize=True)
    np.testing.assert_allclose(encodings @ encodings.T * 2 / width, np.eye(12), atol=2e-3)


def test_sine_encoding_is_the_layers():
    import keras
    from keras_hub.layers import SinePositionEncoding

    layer = SinePositionEncoding()(np.zeros((1, 50, 16), "float32"))
    np.testing.assert_allclose(sine_table(50, 16), keras.ops.convert_to_numpy(layer)[0], atol=1e-4)


def test_correlation_agrees_with_scipy():
    encodings = np.random.default_rng(1).normal(size=(6, 30))
    ours = correlation(encodings)
    for first in range(6):
        for second in range(6):
            expected = pearsonr(encodings[first], encodings[second]).statistic
            assert ours[first, second] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("width", [4, 32, 64, 512, 1000])
def test_correlation_with_a_constant_is_undefined_and_scale_does_not_matter(width):
    plain, normalized = (correlation(pope_table(4, width, normalize=how)) for how in (False, True))
    assert np.isnan(plain[0]).all()
    assert np.isnan(plain[:, 0]).all()
    assert not np.isnan(plain[1:, 1:]).any()
    np.testing.assert_allclose(plain, normalized, atol=1e-12)


def test_mean_by_distance():
    matrix = np.array([[np.nan, np.nan, np.nan], [np.nan, 1.0, -0.5], [np.nan, -0.5, 1.0]])
    means = mean_by_distance(matrix)
    assert means[:2].tolist() == [1.0, 0.5]
    assert np.isnan(means[2])


def test_mutual_information_agrees_with_a_joint_histogram():
    encodings = np.random.default_rng(2).normal(size=(5, 200)).cumsum(axis=0)
    ours = mutual_information(encodings, num_bins=6)
    for first in range(5):
        for second in range(5):
            together = np.histogram2d(encodings[first], encodings[second], bins=6)[0] / 200
            apart = together.sum(axis=1, keepdims=True) * together.sum(axis=0, keepdims=True)
            seen = together > 0
            expected = (together[seen] * np.log(together[seen] / apart[seen])).sum()
            assert ours[first, second] == pytest.approx(expected, abs=1e-5)


def test_mutual_information_at_its_limits():
    level = np.arange(64) % 8
    independent, constant = np.arange(64) // 8, np.ones(64)
    information = mutual_information(np.stack([level, -3.0 * level, independent, constant]), num_bins=8)
    expected = np.log(8) * np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 0]])
    np.testing.assert_allclose(information, expected, atol=1e-6)


def test_the_papers_point_and_its_limit():
    """In the high dimensions PoPE's positions differ and sine's do not; feature 0 spoils the rest."""
    curves = correlation_curves(512, 512, first_high_dimension(sine_table(POSITIONS, 512), 0.99))
    high, everywhere = curves["high dimensions"], curves["all features"]
    assert high["sine"][1] > 0.999
    assert high["sine"][64] == pytest.approx(0.996, abs=0.001)
    assert high["sine"][256] == pytest.approx(0.938, abs=0.001)
    assert high["PoPE"][1] == pytest.approx(0.743, abs=0.001)
    assert high["PoPE"][64] < 0.05
    assert everywhere["sine"][1] == pytest.approx(0.968, abs=0.001)
    assert everywhere["sine"][256] < 0.21
    assert everywhere["PoPE"][256] > 0.4
    assert everywhere["PoPE without feature 0"][256] < 0.05
