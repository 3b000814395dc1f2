"""Learning curves: what is read from runs, the epochs counted, the picture."""

import contextlib
import json

import pytest
from matplotlib.text import Text
from PIL import Image

from kzoo.errors import UserError
from kzoo.evaluation import plots
from kzoo.evaluation.figures import picture
from kzoo.evaluation.plots import (
    loss_name,
    plot_learning_curves,
    reach_table,
    read_history,
    read_labels,
)
from kzoo.presets.attention_bridge import PENALTY

HEADER = "epoch,loss,seconds,tokens_per_second,val_bleu,val_seconds\n"


@pytest.fixture
def runs(tmp_path):
    """Two runs: one reaches BLEU 20 at epoch 2, falls and rises again; one reaches it at epoch 4."""
    scores = {"fast": [8.5, 20.0, 19.0, 25.5], "slow": [3, 9, 15, 20.1]}
    for name, bleu in scores.items():
        lines = [f"{epoch},{6 / epoch},9.5,2000.0,{score},1.0\n" for epoch, score in enumerate(bleu, start=1)]
        (tmp_path / name).mkdir()
        (tmp_path / name / "history.csv").write_text(HEADER + "".join(lines))
    return tmp_path


def test_a_history_is_read(runs):
    history = read_history(runs / "slow" / "history.csv")
    assert history == {"epoch": [1, 2, 3, 4], "val_bleu": [3, 9, 15, 20.1], "loss": [6, 3, 2, 1.5]}


def test_labels_are_given_or_the_folders_name(runs):
    other = runs / "a=b.csv"
    other.write_text(HEADER)
    labelled = read_labels([str(runs / "fast"), f"my run={runs / 'slow' / 'history.csv'}", str(other)])
    assert labelled == {
        "fast": runs / "fast" / "history.csv",
        "my run": runs / "slow" / "history.csv",
        "a=b": other,
    }


def test_a_label_given_twice_is_refused(runs):
    with pytest.raises(UserError, match="'fast'"):
        read_labels([str(runs / "fast"), f"fast={runs / 'slow'}"])


def test_the_first_epoch_at_or_over_counts(runs):
    histories = read_labels([str(runs / "fast"), str(runs / "slow")])
    assert reach_table(histories, [5, 20, 25.5, 30]).splitlines() == [
        "| BLEU | 5 | 20 | 25.5 | 30 |",
        "| --- | ---: | ---: | ---: | ---: |",
        "| fast | 1 | 2 | 4 | – |",
        "| slow | 2 | 4 | – | – |",
    ]


def test_many_runs_are_drawn(runs):
    histories = {f"run {number}": runs / "fast" / "history.csv" for number in range(9)}
    plot_learning_curves(histories, runs / "curves.svg")
    text = (runs / "curves.svg").read_text()
    assert all(f"<!-- {name} -->" in text for name in histories)


def test_each_kind_of_loss_has_its_own_axes(runs):
    recipes = {
        "fast": {"languages": ["en", "de"], "label_smoothing": 0.0, "model": {"penalty_weight": 1}},
        "slow": {"languages": [], "label_smoothing": 0.1, "consistency": 5},
    }
    for name, recipe in recipes.items():
        (runs / name / "recipe.json").write_text(json.dumps(recipe))
    histories = {name: runs / name / "history.csv" for name in recipes}
    assert [loss_name(path) for path in histories.values()] == [
        "nats per sentence, penalty × 1",
        "nats per token, smoothing 0.1, consistency × 5",
    ]
    plot_learning_curves(histories, runs / "curves.png")
    with Image.open(runs / "curves.png") as picture:
        assert picture.size[0] == 1485  # three panels: BLEU and either loss


def test_titles_fit_and_epochs_are_whole_numbers(runs, monkeypatch):
    recipe = {"languages": ["en"], "label_smoothing": 0.1, "model": {"penalty_weight": 1 / 64}}
    (runs / "fast" / "recipe.json").write_text(json.dumps({**recipe, "consistency": 5}))
    (runs / "slow" / "history.csv").write_text(HEADER + "1,2,3,4,5,6\n")
    ticks = {}

    @contextlib.contextmanager
    def measured(path, **options):
        with picture(path, **options) as figure:
            yield figure
            figure.draw_without_rendering()
            for axes in figure.axes:
                right = axes.get_window_extent().x1
                for title in axes.findobj(lambda part: isinstance(part, Text) and "loss" in part.get_text()):
                    assert title.get_window_extent().x1 <= right, title.get_text()
                ticks[path.stem] = {label.get_text() for label in axes.get_xticklabels()}

    monkeypatch.setattr(plots, "picture", measured)
    for name in ("fast", "slow"):
        plot_learning_curves({name: runs / name / "history.csv"}, runs / f"{name}.png")
    assert ticks == {"fast": set("012345"), "slow": set("012")}  # with those beyond the edges


@pytest.mark.parametrize(
    ("model", "penalty"),
    [
        ({}, f", penalty × {PENALTY['penalty_weight']:g}"),
        ({"penalty_weight": 1}, ", penalty × 1"),
        ({"penalty_weight": 0}, ""),
        ({"bridge": False}, ""),
    ],
)
def test_a_bridge_has_its_builder_s_penalty(runs, model, penalty):
    recipe = {"preset": "attention_bridge_m2m_tiny", "languages": ["en", "de"], "model": model}
    (runs / "fast" / "recipe.json").write_text(json.dumps(recipe))
    assert loss_name(runs / "fast" / "history.csv") == "nats per sentence" + penalty


def test_a_finished_run_s_penalty_is_its_preset_s(runs):
    """The builder had another default once."""
    recipe = {"preset": "attention_bridge_m2m_tiny", "languages": ["en", "de"]}
    (runs / "fast" / "recipe.json").write_text(json.dumps(recipe))
    (runs / "fast" / "preset").mkdir()
    config = {"config": {"penalty_weight": 1.0}}
    (runs / "fast" / "preset" / "config.json").write_text(json.dumps(config))
    assert loss_name(runs / "fast" / "history.csv") == "nats per sentence, penalty × 1"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "epoch"),
        (b"epoch,loss\n1,2\n", "val_bleu"),
        (HEADER.encode(), "epoch"),
        (HEADER.encode() + b"1,2,3,4,5,6\n2,x,3,4,5,6\n", "'x'"),
        (HEADER.encode() + b"1,2,3\n", "damaged"),
        (b"\xff\xfe\x00", "damaged"),
    ],
)
def test_a_bad_history_is_named(tmp_path, content, message):
    path = tmp_path / "history.csv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=message) as error:
        plot_learning_curves({"run": path}, tmp_path / "curves.png")
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "curves.png").exists()
