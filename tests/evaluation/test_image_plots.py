"""The pictures of an image's attention: drawn, and showing what they are given."""

import numpy as np
import pytest
from PIL import Image

from kzoo.evaluation.image_plots import plot_image_attention, plot_regions

WORDS = ["▁A", "▁bat", "▁sleeps", "."]


@pytest.fixture
def scores():
    return np.random.default_rng(0).dirichlet(np.ones(4), (2, 3, 9)).astype("float32")


def red(path):
    return np.asarray(Image.open(path).convert("RGB")).astype(int)


def test_draws_strips_with_and_without_the_picture(scores, tmp_path):
    shown = np.zeros((16, 16, 3), "uint8")
    shown[..., 0] = 255
    plot_image_attention(WORDS, scores, tmp_path / "plain.png")
    plot_image_attention(WORDS, scores, tmp_path / "beside.png", shown)
    pure = [(red(tmp_path / name) == (255, 0, 0)).all(axis=-1).sum() for name in ("plain.png", "beside.png")]
    assert pure[0] == 0 < pure[1]


def test_draws_regions_over_the_picture(scores, tmp_path):
    grey = np.full((12, 12, 3), 127, "uint8")
    plot_regions(scores, grey, WORDS, tmp_path / "one.png")
    plot_regions(np.flip(scores, axis=2), grey, WORDS, tmp_path / "other.png")
    assert (red(tmp_path / "one.png") != red(tmp_path / "other.png")).any()
