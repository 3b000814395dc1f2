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


def test_a_region_is_drawn_where_it_lies(tmp_path):
    """One region of 2×8 attends: the brightest place of the panel is its place."""
    scores = np.zeros((1, 1, 16, 1), "float32")
    scores[0, 0, 11] = 1  # second row, fourth of eight columns
    plot_regions(scores, np.zeros((16, 64, 3), "uint8"), ["word"], tmp_path / "wide.png")
    light = red(tmp_path / "wide.png").sum(axis=-1)
    panel = np.argwhere(light < 400)  # the picture; around it the page is white
    (top, left), (bottom, right) = panel.min(axis=0), panel.max(axis=0)
    inside = light[top : bottom + 1, left : right + 1]
    row, column = np.argwhere((inside > inside.min() + 50) & (inside < 700)).mean(axis=0) / inside.shape
    assert row > 0.5
    assert 0.3 < column < 0.55
