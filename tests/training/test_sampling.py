"""Subword regularization in a recipe: the training text alone, whatever the form of its subwords."""

from dataclasses import replace

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import Shards, open_corpus
from kzoo.data.wrapped_batches import SampledBatches
from kzoo.text import MarianTokenizer
from kzoo.text.vocabulary import PAD
from kzoo.training import Recipe, prepare, train
from kzoo.training.corpus import recipe_corpus
from kzoo.training.tasks import OneDirection, SeveralDirections, subword_sampler

MODEL = {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "max_length": 128}


@pytest.fixture
def recipe(tmp_path):
    corpus, files = open_corpus("scenes"), {}
    for split, count in {"train": 120, "val": 4}.items():
        files[split] = [str(tmp_path / f"{split}.{language}") for language in ("en", "de")]
        for path, sentences in zip(files[split], corpus.pairs(split, "en", "de"), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{sentence}\n" for sentence in sentences[:count])
    return Recipe(
        preset="pope_tiny",
        corpus="files",
        source="en",
        target="de",
        **files,
        model=MODEL,
        vocabulary_size=200,
        tokens=256,
        num_shapes=2,
        epochs=2,
        sampling=0.1,
    )


def prepared(recipe, folder):
    folder.mkdir(exist_ok=True)
    return OneDirection(recipe, recipe_corpus(recipe)).prepare(folder)


def texts_of(tokenizer, rows):
    return sorted(tokenizer.detokenize([row[row != PAD][:-1].tolist() for row in rows if row.any()]))


@pytest.mark.parametrize("text", ["raw", "truecased"])
def test_the_training_text_is_sampled(text, recipe, tmp_path):
    run = prepared(replace(recipe, text=text), tmp_path / "run")
    plain = prepared(replace(recipe, text=text, sampling=0.0), tmp_path / "run")
    assert isinstance(run.batches, SampledBatches) and not isinstance(plain.batches, SampledBatches)
    assert run.scorer.source == plain.scorer.source
    tokenizer = run.translator.target_tokenizer
    found, usual = (
        np.concatenate([np.pad(b[n][1], ((0, 0), (0, 99 - b[n][1].shape[1]))) for n in range(len(b))])
        for b in (run.batches, plain.batches)
    )
    assert texts_of(tokenizer, found) == texts_of(tokenizer, usual)
    assert (found != PAD).sum() > 1.1 * (usual != PAD).sum() == 1.1 * run.batches.num_tokens


def test_characters_are_not_sampled(recipe, tmp_path):
    run = prepared(replace(recipe, source_characters="seen"), tmp_path / "run")
    assert run.batches.samplers["source"] == [None] and run.batches.samplers["target"] != [None]


def test_shards_are_sampled(recipe, tmp_path):
    prepare(replace(recipe, sampling=0.0), tmp_path / "shards", 1)
    run = prepared(replace(recipe, shards=str(tmp_path / "shards")), tmp_path / "run")
    plain = prepared(replace(recipe, shards=str(tmp_path / "shards"), sampling=0.0), tmp_path / "run")
    assert len(Shards(tmp_path / "shards")) == 1 and run.digest == plain.digest
    tokens = [
        sum(batches[n][2].sum() for n in range(len(batches))) for batches in (run.batches, plain.batches)
    ]
    assert tokens[0] > 1.1 * tokens[1]


def test_each_language_is_sampled(recipe, tmp_path):
    several = Recipe(
        preset="attention_bridge_m2m_tiny",
        corpus="files",
        languages=["en", "de"],
        train=recipe.train,
        val=recipe.val,
        vocabulary_size=200,
        tokens=256,
        optimizer="adam",
        sampling=0.1,
    )
    run = SeveralDirections(several, recipe_corpus(several)).prepare(tmp_path)
    assert all(run.batches.samplers["source"]) and all(run.batches.samplers["target"])
    assert sum(run.batches[n][2].sum() for n in range(len(run.batches))) > 1.1 * run.batches.num_tokens


def test_a_run_can_be_trained_with_it(recipe, tmp_path):
    assert train(recipe, tmp_path / "run", verbose=0).translate(["A dog."])


def test_other_vocabularies_are_refused():
    assert "remove sampling" in message_of(subword_sampler, MarianTokenizer(), 0.1)
