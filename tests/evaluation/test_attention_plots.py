"""The pictures of an image's attention and of the bridge's: drawn, and showing what they are given."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pytest
from message_of import message_of
from PIL import Image

from kzoo.evaluation import figures
from kzoo.evaluation.plots import plot_bridge, plot_image_attention, plot_regions

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


def test_the_words_stand_over_the_first_strip(tmp_path):
    """And nothing under the last: full attention is drawn dark blue, the words are darker than the page."""
    plot_image_attention(WORDS, np.ones((2, 3, 1, 4), "float32"), tmp_path / "blue.png")
    drawn = red(tmp_path / "blue.png")
    blue = (abs(drawn - (8, 48, 107)) < 6).all(axis=-1)
    rows, columns = np.flatnonzero(blue.any(axis=1)), np.flatnonzero(blue[blue.shape[0] // 3])
    across = columns[: np.argmax(np.diff(columns, append=10**6) > 1) + 1]  # without the scale beside
    ink = drawn[:, across].sum(axis=-1) < 400
    assert ink[: rows[0] - 10].sum() > 50
    assert not ink[rows[-1] + 10 :].any()


def test_draws_regions_over_the_picture(scores, tmp_path):
    grey = np.full((12, 12, 3), 127, "uint8")
    plot_regions(scores, grey, WORDS, tmp_path / "one.png", (9, 5))
    plot_regions(np.flip(scores, axis=2), grey, WORDS, tmp_path / "other.png", (9, 5))
    assert (red(tmp_path / "one.png") != red(tmp_path / "other.png")).any()


@pytest.mark.parametrize(
    ("image_shape", "size", "grid", "place"),
    [
        ((16, 64, 3), (16, 64), (2, 8), (1, 3)),
        ((16, 64, 3), (40, 30), (2, 8), (1, 3)),  # read as 16×64, whatever the file has
        ((49, 512), (300, 500), (7, 7), (2, 5)),  # VGG's block5_pool, of a photograph made square
        ((49, 512), (500, 300), (7, 7), (5, 2)),
    ],
)
def test_a_region_is_drawn_where_it_lies(image_shape, size, grid, place, tmp_path):
    """One region attends: the only one that stays red in the word's panel, right of the picture itself."""
    scores = np.zeros((1, 1, *grid, 1), "float32")
    scores[0, 0, *place] = 1
    shown = np.full((*size, 3), (255, 0, 0), "uint8")
    plot_regions(scores.reshape(1, 1, -1, 1), shown, ["word"], tmp_path / "x.png", image_shape)
    drawn = red(tmp_path / "x.png")
    clear = (abs(drawn - (255, 0, 0)) < 6).all(axis=-1)
    dimmed = (abs(drawn - (155, 121, 126)) < 6).all(axis=-1)
    columns = np.flatnonzero((clear | dimmed).mean(axis=0) > 0.3)
    panel = np.split(columns, np.flatnonzero(np.diff(columns) > 5) + 1)[1]
    rows = np.flatnonzero((clear | dimmed)[:, panel].mean(axis=1) > 0.8)
    inside = clear[rows[0] : rows[-1] + 1, panel[0] : panel[-1] + 1]
    centre = np.argwhere(inside).mean(axis=0) / inside.shape
    expected = (np.array(place) + 0.5) / grid
    assert abs(centre - expected).max() < 0.5 / max(grid)
    assert abs(inside.mean() * np.prod(grid) - 1) < 0.3


def test_regions_that_lie_nowhere_are_named(scores, tmp_path):
    grey, path = np.full((12, 12, 3), 127, "uint8"), tmp_path / "x.png"
    assert "(4096,)" in message_of(plot_regions, scores[:, :, :1], grey, WORDS, path, (4096,))
    assert "8 regions" in message_of(plot_regions, scores[:, :, :8], grey, WORDS, path, (8, 512))
    assert not path.exists()


def test_a_sentence_in_two_languages_is_drawn(tmp_path):
    random = np.random.default_rng(0)
    attention = {
        "en": (["▁a", "▁dog", "</s>"], random.random((4, 3))),
        "de": (["▁ein", "▁H", "und", "</s>"], random.random((4, 4))),
    }
    plot_bridge(attention, tmp_path / "bridge.svg")
    text = (tmp_path / "bridge.svg").read_text()
    assert text.startswith("<?xml")
    written = [html.unescape(label) for label in re.findall("<!-- (.+) -->", text)]
    english, german = written.index("en"), written.index("de")
    heads = ["1", "2", "3", "4", "head"]
    assert written[:english] == ["a", "dog", "</s>", *heads]
    assert written[english + 1 : german] == ["ein", "H", "und", "</s>", *heads]
    assert written[-1] == "attention"


def test_installed_noto_fonts_draw_other_scripts(monkeypatch):
    installed = [SimpleNamespace(name=name) for name in ("Noto Sans Thai", "Arial", "Noto Sans Thai")]
    monkeypatch.setattr(figures.fontManager, "ttflist", installed)
    families = figures._families.__wrapped__()
    assert families[0] == "DejaVu Sans"
    assert families.count("Noto Sans Thai") == 1
    assert "Arial" not in families
