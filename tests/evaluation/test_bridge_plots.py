"""The picture of the bridge's heads."""

import html
import re
from types import SimpleNamespace

import numpy as np
import pytest

from kzoo.evaluation import figures
from kzoo.evaluation.attention_plots import plot_bridge


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


def test_characters_that_no_font_has_are_named_once(tmp_path):
    attention = {"x": (["\U0001f9ff\U00016a40", "\U00016a41"], np.full((2, 2), 0.5))}
    with pytest.warns(UserWarning, match="no installed font can draw .* Noto Sans") as warned:
        plot_bridge(attention, tmp_path / "bridge.png")
    assert len(warned) == 1


def test_installed_noto_fonts_draw_other_scripts(monkeypatch):
    installed = [SimpleNamespace(name=name) for name in ("Noto Sans Thai", "Arial", "Noto Sans Thai")]
    monkeypatch.setattr(figures.fontManager, "ttflist", installed)
    families = figures._families.__wrapped__()
    assert families[0] == "DejaVu Sans"
    assert families.count("Noto Sans Thai") == 1
    assert "Arial" not in families
