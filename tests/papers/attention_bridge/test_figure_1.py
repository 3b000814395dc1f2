"""The bars of the attention bridge paper's Figure 1."""

import pytest
from matplotlib.axes import Axes

from training.attention_bridge.tables import plot_systems


def test_each_system_has_a_bar_for_each_direction(tmp_path, monkeypatch):
    """Side by side about the direction's place, as high as BLEU."""
    drawn, bars = [], Axes.bar
    monkeypatch.setattr(Axes, "bar", lambda *a, **k: drawn.append(bars(*a, **k)) or drawn[-1])
    systems = {"best": {"en-de": 30.0, "de-en": 20.0}, "unseen": {"en-de": 10.0}}
    plot_systems(systems, tmp_path / "bars.svg")
    assert [[bar.get_height() for bar in container] for container in drawn] == [[30, 20], [10]]
    places = [[bar.get_x() for bar in container] for container in drawn]
    assert places == [pytest.approx([-0.4, 0.6]), pytest.approx([0.0])]
    assert {bar.get_width() for container in drawn for bar in container} == {0.4}
    text = (tmp_path / "bars.svg").read_text()
    for written in ("en–de", "de–en", "best", "unseen", "BLEU, lowercased"):
        assert f"<!-- {written} -->" in text
