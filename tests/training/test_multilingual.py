"""Training several directions at once: a score for each; a killed run goes on to the same weights."""

import csv
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from changed_tasks import quick_task
from message_of import message_of

from kzoo.data import CORPORA, Corpus, open_corpus
from kzoo.data.text_files import Text
from kzoo.decoding import search_settings
from kzoo.presets import load
from kzoo.training import Recipe, train
from kzoo.training.run import train_task

DIRECTIONS = ("en_en", "en_de", "de_en", "de_de")
RECIPE = Recipe(
    preset="attention_bridge_m2m_tiny",
    corpus="scenes",
    languages=["en", "de"],
    monolingual=True,
    model={
        "encoder": "cnn",
        "embedding_dim": 8,
        "width": 8,
        "num_heads": 2,
        "hidden_dim": 8,
        "max_length": 64,
    },
    vocabulary_size=200,
    sentences=16,
    num_shapes=1,
    batches_per_epoch=10,
    validation_sentences=4,
    optimizer="adam",
    rate=0.01,
    bpe_dropout=0.1,
    clip_norm=5.0,
    epochs=2,
)


@pytest.fixture(scope="module", autouse=True)
def few_scenes():
    """Scenes, cut to 100 short sentences for training and 8 for validation."""
    scenes = open_corpus("scenes")

    def read(split, language):
        rows = zip(*(scenes.sentences(split, code) for code in scenes.languages), strict=True)
        short = [row for row in rows if max(map(len, row)) < 35][: 100 if split == "train" else 8]
        return Text("scenes", [row[scenes.languages.index(language)] for row in short])

    few = Corpus("scenes", scenes.languages, scenes.splits, "", "", read)
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(CORPORA, "scenes", few)
        patch.setattr(search_settings, "LENGTHS", (32,))  # one shape: each is compiled on its own
        yield


def test_validation_text_that_is_not_aligned_is_refused(tmp_path, monkeypatch):
    scenes = open_corpus("scenes")

    def read(split, language):
        text = scenes.read(split, language)
        return Text("val.de", text.sentences[1:]) if (split, language) == ("val", "de") else text

    broken = Corpus("scenes", scenes.languages, scenes.splits, "", "", read)
    monkeypatch.setitem(CORPORA, "scenes", broken)
    assert "val.de" in message_of(train, RECIPE, tmp_path / "run")
    assert not (tmp_path / "run" / "recipe.json").exists()


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "unbroken"
    return folder, train(RECIPE, folder, verbose=0)


def test_the_history_has_a_score_for_each_direction(unbroken):
    folder, translator = unbroken
    rows = list(csv.DictReader((folder / "history.csv").open()))
    assert [row["epoch"] for row in rows] == ["1", "2"]
    assert float(rows[1]["loss"]) < float(rows[0]["loss"])
    for row in rows:
        scores = {direction: float(row[f"val_bleu_{direction}"]) for direction in DIRECTIONS}
        np.testing.assert_allclose(float(row["val_bleu"]), (scores["en_de"] + scores["de_en"]) / 2)
    assert sorted(path.name for path in folder.glob("subwords.*.model")) == [
        "subwords.de.model",
        "subwords.en.model",
    ]
    preset = load(folder)
    assert preset.languages == ["en", "de"]
    np.testing.assert_allclose(preset.get_weights()[0], translator.get_weights()[0], atol=1e-3)


def test_a_killed_run_goes_on_to_the_same_weights(unbroken, tmp_path):
    """Killed in its second epoch; dropout and the order of batches go on too."""

    def kill():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_task(partial(quick_task, step=13, action=kill), RECIPE, tmp_path / "run", verbose=0)
    assert not (tmp_path / "run" / "preset").exists()
    translator = train_task(quick_task, RECIPE, tmp_path / "run", verbose=0)
    for ours, theirs in zip(translator.get_weights(), unbroken[1].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"languages": ["en", "it"]}, "'it'"),
        ({"languages": ["en", "de", "de"]}, "'de'"),
        ({"centre": "fr"}, "'fr'"),
        ({"left_out": "en-de"}, "pair"),
        ({"directions": ["en-de", "en-de"]}, "en-de"),
        ({"pair_weights": {"ende": 1}}, "'ende'"),
        ({"pair_weights": {"en-de": "1"}}, "en-de is '1'"),
        ({"model": {**RECIPE.model, "depth": 3}}, "'depth'"),
        ({"model": {**RECIPE.model, "max_length": 8}}, "split val"),
    ],
)
def test_a_bad_recipe_is_named(wrong, name, tmp_path):
    assert name in message_of(train, replace(RECIPE, **wrong), tmp_path / "run", verbose=0)
