"""The recipes in training/: all of them are read, and those of the papers' own sizes have their schedules."""

import dataclasses
import inspect
from pathlib import Path

import pytest
from message_of import message_of

from kzoo.decoding import GNMT, SearchSettings
from kzoo.presets.shelf import BUILDERS
from kzoo.training import Recipe, read_recipe
from kzoo.training.optimizer import halved_rate, make_optimizer
from kzoo.training.recipe import KEYS

FOLDER = Path(__file__).parents[2] / "training"
RECIPES = [path for path in sorted(FOLDER.glob("*/*.toml")) if path.stem != "paper"]


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_every_recipe_is_read(path):
    recipe = read_recipe(path)
    earlier = path.with_stem(Path(recipe.preset).name)  # of the run that is trained further
    assert recipe.preset in BUILDERS or earlier.exists()
    assert f" kzoo train {path.stem}" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("name", "warmup_steps", "betas", "epsilon"),
    [("pope_multi30k_base", 4_000, (0.9, 0.98), 1e-9), ("image_text_base", 16_000, (0.9, 0.997), 1e-9)],
)
def test_the_rate_of_vaswani_s_schedule_peaks_after_the_warm_up(name, warmup_steps, betas, epsilon):
    """Vaswani et al. 2017, Section 5.3; Ma et al. 2020, Section III.B."""
    recipe = read_recipe(name)
    optimizer = make_optimizer(recipe, width=512)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (*betas, epsilon)
    steps = [warmup_steps // 2, warmup_steps, 4 * warmup_steps]
    highest = 512**-0.5 * warmup_steps**-0.5
    rates = [float(optimizer._learning_rate(recipe.accumulate * step)) for step in steps]
    assert rates == pytest.approx([highest / 2, highest, highest / 2], rel=1e-3)


def test_the_rate_of_glyph_zh_en_is_halved_after_four_epochs():
    """Broscheit et al. 2018, Section 4.2; Adam's other values are PyTorch's."""
    recipe = read_recipe("glyph_zh_en")
    optimizer = make_optimizer(recipe, width=512)
    assert (optimizer.beta_1, optimizer.beta_2, optimizer.epsilon) == (0.9, 0.999, 1e-8)
    rates = [halved_rate(recipe.rate, recipe.halve_after, epoch) for epoch in range(10)]
    assert rates == pytest.approx([1e-3] * 4 + [1e-3 / 2**n for n in range(1, 7)])


def test_the_search_of_a_recipe():
    recipe = read_recipe("demo_scenes", ["gnmt=0.6", "max_length=40", "beam_size=3"])
    assert SearchSettings().changed(**recipe.search_settings()) == SearchSettings(3, GNMT(0.6), 40)
    given = read_recipe("demo_scenes", ["length_penalty=0.5"]).search_settings()
    assert SearchSettings(7, GNMT(0.6)).changed(**given) == SearchSettings(7, 0.5)


def test_minutes_bring_a_cooldown():
    assert read_recipe("attention_bridge_m2m_tiny").cooldown == 0
    assert read_recipe("attention_bridge_m2m_tiny", ["minutes=9"]).cooldown == 0.2
    assert read_recipe("attention_bridge_m2m_tiny", ["minutes=9", "cooldown=0.3"]).cooldown == 0.3
    assert "cooldown" in message_of(read_recipe, "attention_bridge_m2m_tiny", ["minutes=9", "cooldown=0"])


@pytest.mark.parametrize("key", ["beam_size", "max_length"])
def test_a_search_beyond_every_machine_is_refused(key):
    for value in (10**6, 10**9, 10**30):
        assert f"{key} is {value}" in message_of(read_recipe, "demo_scenes", [f"{key}={value}"])


@pytest.mark.parametrize(
    ("key", "ours"),
    [
        ("batch_size", "tokens"),
        ("learning_rate", "rate"),
        ("lr", "rate_factor"),
        ("early_stopping", "patience"),
        ("dropout", "model.dropout"),
    ],
)
def test_keys_of_other_tools_point_to_ours(key, ours):
    assert key not in KEYS
    assert ours.split(".")[0] in KEYS
    assert ours in message_of(read_recipe, "demo_scenes", [f"{key}=1"]).split("kzoo's is ")[1]


def test_a_file_name_with_a_nul_is_one_line():
    assert "NUL" in message_of(read_recipe, "a\0.toml")


def test_every_key_is_documented():
    documented = inspect.getdoc(Recipe)
    assert all(f"{field.name}: " in documented for field in dataclasses.fields(Recipe))
