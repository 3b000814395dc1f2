"""The learning rate's fall at the end of a run, by steps, minutes and patience."""

import csv
import re
import time
from dataclasses import replace
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from message_of import message_of
from test_survival import (
    BATCHES,
    COOLED,
    RECIPE,
    Score,
    TinyTask,
    checkpoints,
    results,
    signalled,
    train,
)

from kzoo.models import SGD, Adam
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.cooldown import Cooldown, CoolingAdam, CoolingSGD, Occasionally, rate_factor
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.run import train_task


@pytest.mark.parametrize(("cooling", "kind"), [(CoolingAdam, Adam), (CoolingSGD, SGD)])
def test_the_factor_is_one_of_the_rate(cooling, kind, random):
    x, y = random.normal(size=(8, 4)), random.normal(size=(8, 1))

    def trained(optimizer, factor=None):
        keras.utils.set_random_seed(3)
        model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
        model.compile(optimizer, "mse")
        if factor:
            rate_factor(model).assign(factor)
        for _ in range(3):
            model.train_on_batch(x, y)
        return model.get_weights()

    for found, expected in zip(trained(cooling(0.1), 0.25), trained(kind(0.025)), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def cooldown(step=0, batches=100, minutes=0.0, patience=0, seconds=0.0, history=()):
    state = Checkpoints("unused")
    state.step, state.history = step, list(history)
    made = Cooldown(state, 0.25, batches, 10, minutes, patience, time.perf_counter() - seconds)
    made._take_time()
    return made


@pytest.mark.parametrize(("step", "factor"), [(0, 1), (75, 1), (80, 0.8), (90, 0.4), (100, 0), (120, 0)])
def test_the_rate_falls_in_the_last_quarter_of_the_steps(step, factor):
    assert cooldown(step).factor == pytest.approx(factor)


def test_the_rate_falls_in_the_last_quarter_of_the_minutes():
    """Of ten minutes, in which training may take all but 20 s and six validations of 40 s in all: 540 s.

    The first validation, and the first after a restart, do not tell how long the next will be.
    """
    first = {"epoch": 1, "minutes": 2.0, "val_seconds": 30.0, "val_bleu": 0.0}
    row = {"epoch": 2, "minutes": 4.0, "val_seconds": 40 / 6, "val_bleu": 1.0}
    restarted = {**row, "val_seconds": 20.0}
    for seconds, factor in ((165, 1), (165 + 54, 0.6), (300, 0)):  # after a restart at 240 s
        for history in ([first, row], [first, {**row, "minutes": 2.0}, restarted]):
            made = cooldown(minutes=10.0, batches=10**6, seconds=seconds, history=history)
            assert made.factor == pytest.approx(factor, abs=0.01)
    # Of 550 s, while there is only the first.
    assert cooldown(minutes=10.0, batches=10**6, seconds=320, history=[first]).factor == pytest.approx(
        0.8, abs=0.01
    )


def test_the_rate_falls_when_patience_runs_out():
    """The second epoch is the best, so it runs out after the fifth; it falls until batch 67."""
    history = [
        {"epoch": n + 1, "val_bleu": score, "minutes": 0.1} for n, score in enumerate((1, 2, 2, 1, 0, 0))
    ]
    falling = [cooldown(step, 1000, patience=3, history=history).factor for step in (50, 60, 67)]
    assert falling == pytest.approx([1, (1 - 60 / 67) / 0.25, 0], abs=0.02)
    assert cooldown(50, 1000, patience=3, history=history[:4]).factor == 1
    unscored = [{"epoch": n, "minutes": 0.1} for n in range(7, 12)]  # they have not failed
    best = [{**history[0], "epoch": 6}]
    assert cooldown(110, 1000, patience=3, history=[*best, *unscored]).factor == 1
    worse = {**history[-1], "epoch": 12}
    found = [cooldown(step, 1000, patience=3, history=[*best, *unscored, worse]) for step in (120, 140)]
    assert [one.factor for one in found] == pytest.approx([1, 0.5])


def test_scoring_takes_a_tenth_of_the_time():
    """But not the first, which takes longer than all others."""
    now = 0.0

    class Scorer(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            nonlocal now
            now += 2 if scored else 60
            scored.append(epoch)

    scored, scores = [], Occasionally(Scorer(), lambda: now)
    scores.set_params({"epochs": 31})
    scores.set_model(SimpleNamespace(stop_training=False))
    for epoch in range(31):
        now += 5
        scores.on_epoch_end(epoch, {})
    assert scored == [0, *range(1, 30, 4), 30]


def learned(folder):
    """Return a run's weights and losses. Which of its epochs are scored depends on the clock."""
    rows, weights = results(folder)
    return [row[:2] for row in rows], weights


@pytest.mark.parametrize("share", [0.5, 0.56])  # the rate falls from the second epoch on; a batch earlier
def test_a_run_with_a_later_end_goes_on_from_before_the_fall(share, tmp_path):
    """As if it had had its later end from the beginning."""
    for folder, ends in (("once", [4]), ("extended", [2, 4])):
        for epochs in ends:
            train(replace(COOLED, cooldown=share, epochs=epochs), tmp_path / folder)
    assert learned(tmp_path / "extended") == learned(tmp_path / "once")
    assert not any(name > "epoch_0004" for name in checkpoints(tmp_path / "extended"))


def test_a_run_that_resumes_in_its_fall_can_still_go_back_to_before_it(tmp_path):
    with pytest.raises(SystemExit):
        train(replace(COOLED, epochs=4), tmp_path / "extended", scorer=signalled(BATCHES + 7, 15))
    for epochs in (2, 4):  # of two epochs, the rate would have fallen by now
        train(replace(COOLED, epochs=epochs), tmp_path / "extended")
    train(replace(COOLED, epochs=4), tmp_path / "once")
    assert learned(tmp_path / "extended") == learned(tmp_path / "once")


def test_a_run_that_is_stopped_in_its_fall_goes_on(tmp_path):
    train(COOLED, tmp_path / "whole")
    with pytest.raises(SystemExit):
        train(COOLED, tmp_path / "stopped", scorer=signalled(2 * BATCHES + 6, 15))
    train(COOLED, tmp_path / "stopped")
    assert learned(tmp_path / "stopped") == learned(tmp_path / "whole")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="tf.distribute is TensorFlow's")
def test_the_rate_falls_under_tf_distribute(tmp_path):
    factors = {}
    for strategy in ("one", "mirrored"):
        train_task(TinyTask, COOLED, tmp_path / strategy, 0, strategy)
        with open(tmp_path / strategy / "history.csv") as file:
            factors[strategy] = [row["rate_factor"] for row in csv.DictReader(file)]
    assert factors["mirrored"] == factors["one"]


def test_a_run_ends_with_its_minutes(tmp_path, monkeypatch):
    class Slow(Score):
        def on_train_batch_end(self, batch, logs=None):
            time.sleep(0.05)

    recipe = replace(COOLED, epochs=1000, minutes=0.1)
    train(recipe, tmp_path, scorer=Slow())
    assert len(results(tmp_path)[0]) < 100


@pytest.mark.parametrize(("steps", "shown"), [(BATCHES, [BATCHES]), (BATCHES + 5, [BATCHES, 5])])
def test_an_epoch_that_ends_early_shows_the_batches_that_it_had(steps, shown, tmp_path, capsys):
    train(replace(RECIPE, steps=steps), tmp_path, verbose=2)
    assert [int(n) for n in re.findall(rf"(\d+)/{BATCHES} - ", capsys.readouterr().out)] == shown


def test_minutes_need_a_cooldown():
    assert "cooldown" in message_of(check_recipe, replace(RECIPE, corpus="scenes", minutes=3.0))
