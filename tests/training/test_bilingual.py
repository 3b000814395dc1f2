"""One direction's task: its tokenizers in each form of text, and the features that a run began with."""

import json
from dataclasses import asdict, replace
from types import SimpleNamespace

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import Extractor, open_corpus, write_features
from kzoo.presets import load
from kzoo.text import MosesSubwordTokenizer, TruecasedSubwordTokenizer, learn_forms, moses_tokens
from kzoo.training import Recipe
from kzoo.training.corpus import recipe_corpus
from kzoo.training.prepared_run import Validation
from kzoo.training.recipe import shard_settings
from kzoo.training.starting_preset import copy_start
from kzoo.training.tasks import recipe_task
from kzoo.training.vocabularies import learned_tokenizers

VGG = Extractor("vgg19", "fc2", "random", seed=3)
COUNTS = {"train": 60, "val": 4}


@pytest.fixture
def recipe(tmp_path):
    """A recipe of a model of features, on files of a few sentences."""
    corpus, files = open_corpus("scenes"), {}
    for split, count in COUNTS.items():
        files[split] = [str(tmp_path / f"{split}.{language}") for language in ("en", "de")]
        for path, sentences in zip(files[split], corpus.pairs(split, "en", "de"), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{sentence}\n" for sentence in sentences[:count])
        write(tmp_path / "images", split)
    return Recipe(
        preset="image_text_tiny",
        corpus="files",
        source="en",
        target="de",
        **files,
        images=str(tmp_path / "images"),
        model={
            "num_layers": 1,
            "width": 8,
            "num_heads": 2,
            "feedforward_dim": 8,
            "max_length": 128,
            "image_shape": [10],
        },
        text="truecased",
        vocabulary_size=300,
    )


def write(folder, split, extractor=VGG, count=None, width=10):
    """Write made-up features of a split."""
    rows = np.ones((count or COUNTS[split], width), "float32")
    write_features(
        folder / f"{split}.npy", lambda names: [rows], [f"{i}" for i in range(len(rows))], extractor
    )


def built(recipe, folder):
    """The translator of a run in the folder, before its first step."""
    folder.mkdir(exist_ok=True)
    return recipe_task(recipe, recipe_corpus(recipe)).prepare(folder).translator


def refused(recipe, folder, *names):
    message = message_of(built, recipe, folder)
    assert all(name in message for name in names)


def test_truecased_text_has_a_truecaser_for_each_language(recipe, tmp_path):
    sides = recipe_corpus(recipe).pairs("train", "en", "de")
    run = tmp_path / "run"
    run.mkdir()
    source, target = learned_tokenizers(recipe, run, *sides)
    assert isinstance(source, TruecasedSubwordTokenizer)
    assert (source.language, target.language) == ("en", "de")
    assert source.proto == target.proto
    for language, text in zip(("en", "de"), sides, strict=True):
        forms = json.loads((run / f"truecaser.{language}.json").read_text())
        assert forms == learn_forms(moses_tokens(sentence, language) for sentence in text)
    written = {path: path.read_bytes() for path in run.iterdir()}
    again = learned_tokenizers(recipe, run, *sides)
    assert {path: path.read_bytes() for path in run.iterdir()} == written
    for one, other, text in zip((source, target), again, sides, strict=True):
        assert other(text) == one(text)
        assert [t.lower() for t in one.detokenize(one(text))] == [t.lower() for t in text]
    (run / "subwords.joint.model").unlink()  # as a run begins that another recipe's text was prepared for
    shorter = [side[:30] for side in sides]
    learned_tokenizers(recipe, run, *shorter)
    forms = json.loads((run / "truecaser.de.json").read_text())
    assert forms == learn_forms(moses_tokens(sentence, "de") for sentence in shorter[1])


def test_each_form_of_text_has_its_tokenizers(recipe, tmp_path):
    sides = recipe_corpus(recipe).pairs("train", "en", "de")
    for text in ("raw", "lowercased", "truecased"):
        for joint in (True, False):
            form = replace(recipe, text=text, joint_vocabulary=joint, vocabulary_size=150)
            run = tmp_path / f"{text}_{joint}"
            run.mkdir()
            tokenizers = learned_tokenizers(form, run, *sides)
            names = [tokenizer.config_file for tokenizer in tokenizers]
            assert names == (
                ["joint_tokenizer.json"]
                if (text, joint) == ("raw", True)
                else ["source_tokenizer.json", "target_tokenizer.json"]
            )
            assert len(list(run.glob("subwords.*"))) == 2 - joint
            plain = [tokenizers[-1].detokenize(tokenizers[-1](sides[1][:1]))[0], sides[1][0]]
            assert plain[0] == (plain[1].lower() if text == "lowercased" else plain[1])


def test_shards_have_raw_text(recipe):
    assert "truecased" in message_of(shard_settings, recipe)


def test_a_truecased_preset_of_features_needs_nothing_else(recipe, tmp_path):
    translator = built(recipe, tmp_path / "run")
    assert translator.backbone.get_config()["target_vocabulary_size"] is None  # one matrix for both
    assert translator.extractor == asdict(VGG)
    translator.save_to_preset(tmp_path / "preset")
    loaded = load(tmp_path / "preset")
    assert loaded.extractor == asdict(VGG)
    sentences = ["The dog sleeps.", "A MAN", ""]
    for name in ("source_tokenizer", "target_tokenizer"):
        theirs, ours = getattr(loaded, name), getattr(translator, name)
        assert isinstance(theirs, TruecasedSubwordTokenizer)
        assert theirs.language == ours.language
        assert theirs(sentences) == ours(sentences)
        assets = sorted(path.name for path in (tmp_path / "preset" / "assets" / name).iterdir())
        assert assets == ["truecaser.json", "vocabulary.spm"]


def test_a_fine_tuned_preset_reads_its_extractor_s_features_only(recipe, tmp_path):
    built(recipe, tmp_path / "first").save_to_preset(tmp_path / "preset")
    run, tuning = tmp_path / "run", replace(recipe, preset=str(tmp_path / "preset"), model={"dropout": 0.2})
    run.mkdir()
    copy_start(tuning, run)
    translator = built(tuning, run)
    assert translator.extractor == asdict(VGG)
    assert translator.backbone.get_config()["dropout"] == 0.2
    assert isinstance(translator.source_tokenizer, TruecasedSubwordTokenizer)
    for split in COUNTS:
        write(tmp_path / "images", split, replace(VGG, layer="fc1"))
    refused(tuning, run, "vgg19 fc1", "vgg19 fc2")


def test_features_that_do_not_fit_are_refused_before_training(recipe, tmp_path):
    run, images = tmp_path / "run", tmp_path / "images"
    write(images, "val", replace(VGG, seed=4))
    refused(recipe, run, "val.npy", "seed 4", "seed 3")
    write(images, "val", count=3)
    refused(recipe, run, "val.npy", "4 sentences", "3 images")
    write(images, "val", width=12)
    refused(recipe, run, "val.npy", "(12,)", "(10,)")


def test_lowercased_translations_are_scored_in_lower_case(recipe):
    task = recipe_task(replace(recipe, images=""), recipe_corpus(recipe))
    _, target = task.validation
    assert target != [sentence.lower() for sentence in target]
    read = Validation(task.validation, {task.languages: []}, [])
    translator = SimpleNamespace(target_tokenizer=MosesSubwordTokenizer(), direction=lambda *pair: pair)
    score = task.scorer(translator, read)
    assert score.lowercase
