"""Whose folder it is: what a run may begin in, what it may go on with, and what it leaves alone."""

import dataclasses
import json

import pytest
from message_of import message_of

from kzoo.training import Recipe
from kzoo.training.run_folder import RATES, claim

RECIPE = Recipe(preset="pope_tiny", corpus="none", source="en", target="de")

CHANGE_NO_STEP = {
    "epochs",
    "minutes",
    "checkpoint_minutes",
    "shards",
    "images",
    "test",
    "beam_size",
    "length_penalty",
    "gnmt",
}
# Values that no field has by default.
OTHER = {type(None): 9, str: "other", int: 12345, float: 0.12345, list: ["other"], dict: {"other": 1}}


def learn(folder):
    """Leave what a run learns before its first checkpoint, and a note that is not its own."""
    (folder / "subwords.joint.model").write_text("learned")
    (folder / "language_model").mkdir()
    (folder / "language_model_notes.md").write_text("mine")


def names(folder) -> set[str]:
    return {path.name for path in folder.iterdir()}


@pytest.mark.parametrize("name", ["subwords.joint.model", "characters.json", "language_model"])
def test_what_is_no_runs_is_left_alone(name, tmp_path):
    (tmp_path / name).write_text("mine")
    assert name in message_of(claim, tmp_path, RECIPE)
    assert names(tmp_path) == {name}


def test_another_recipe_begins_anew_before_the_first_checkpoint(tmp_path):
    claim(tmp_path, RECIPE)
    learn(tmp_path)
    claim(tmp_path, dataclasses.replace(RECIPE, vocabulary_size=500))
    assert names(tmp_path) == {"recipe.json", "language_model_notes.md"}
    assert json.loads((tmp_path / "recipe.json").read_text())["vocabulary_size"] == 500


@pytest.mark.parametrize("trained", [True, False])
def test_what_may_differ_and_what_a_file_makes_of_a_recipe_keep_what_is_learned(trained, tmp_path):
    recipe = dataclasses.replace(RECIPE, model={"sizes": (4, 4)}, train=("a", "b"))
    claim(tmp_path, recipe)
    learn(tmp_path)
    if trained:
        (tmp_path / "checkpoints" / "epoch_0001").mkdir(parents=True)
    values = json.loads((tmp_path / "recipe.json").read_text())
    del values["accumulate"]  # as if this version had brought it
    (tmp_path / "recipe.json").write_text(json.dumps(values))
    before = names(tmp_path)
    claim(tmp_path, dataclasses.replace(recipe, epochs=recipe.epochs + 2, checkpoint_minutes=1.0))
    assert names(tmp_path) == before


def test_a_trained_run_goes_on_with_its_own_recipe_only(tmp_path):
    claim(tmp_path, RECIPE)
    (tmp_path / "checkpoints" / "epoch_0004").mkdir(parents=True)
    fields = {field.name for field in dataclasses.fields(Recipe)}
    assert fields > CHANGE_NO_STEP
    for name in fields - CHANGE_NO_STEP:
        before = getattr(RECIPE, name)
        other = not before if isinstance(before, bool) else OTHER[type(before)]
        message = message_of(claim, tmp_path, dataclasses.replace(RECIPE, **{name: other}))
        assert f" {name}:" in message
        assert ("fine-tune" in message) == (name in RATES)
    assert "epochs=4" in message_of(claim, tmp_path, dataclasses.replace(RECIPE, epochs=3))


def test_a_preset_without_checkpoints_is_not_trained_again(tmp_path):
    claim(tmp_path, RECIPE)
    (tmp_path / "preset").mkdir()
    assert "checkpoints" in message_of(claim, tmp_path, RECIPE)


def test_where_nothing_is_trained_the_text_is_learned_from_as_it_is_now(tmp_path):
    claim(tmp_path, RECIPE)
    (tmp_path / "subwords.joint.model").write_text("of a text that has been corrected since")
    claim(tmp_path, RECIPE)
    assert names(tmp_path) == {"recipe.json"}
