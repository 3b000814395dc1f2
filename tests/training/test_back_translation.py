"""Further text in the target language: a reverse model writes its sources, once, and training has them."""

import dataclasses
import json
import os
import shutil
import time

import keras
import numpy as np
import pytest
from message_of import message_of
from test_one_process import held
from test_own_text import BASE, MODEL, TEXT, write

from kzoo.cli.text_to_score import own_corpus
from kzoo.hub import Preset
from kzoo.presets import load
from kzoo.training import Recipe, train
from kzoo.training.back_translation import DONE, TAG, back_translate, reversed_recipe
from kzoo.training.corpus import check_own_files, recipe_corpus, record_held_out
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.run_folder import REVERSE, begun_recipe, record
from kzoo.training.tasks import recipe_task

FURTHER = ["ein Mann rennt", "ein Hund schläft", "ein Hund schläft", "", "Hunde", "Hunde schlafen"]
NEW = ["ein Mann rennt", "ein Hund schläft", "Hunde schlafen"]  # the corpus has "Hunde"
# A run sets a distribution on JAX, once for both models, and takes it back at its end.
STRATEGY = "data_parallel" if keras.backend.backend() == "jax" else "one"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    (folder / "more.de").write_text("".join(f"{line}\n" for line in FURTHER), "utf-8")
    values = BASE | {"train": write(folder, TEXT), "val": write(folder, TEXT[:3], "val")}
    values |= {"model": MODEL, "vocabulary_size": 50, "tokens": 64, "num_shapes": 1, "epochs": 2}
    values["beam_size"] = 1  # low scores are found by validation's greedy search: one to compile, not two
    return check_recipe(Recipe(**values, monolingual_target=[str(folder / "more.de")]))


@pytest.fixture(scope="module")
def run(recipe, tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    return folder, train(recipe, folder, verbose=0, strategy=STRATEGY)


def test_the_reverse_model_is_trained_on_the_same_text(run):
    folder, translator = run
    reverse = json.loads((folder / REVERSE / "recipe.json").read_text())
    assert (reverse["source"], reverse["target"]) == ("de", "en")
    assert reverse["monolingual_target"] == []
    assert (folder / REVERSE / "preset").is_dir()
    assert (translator.source_language, translator.target_language) == ("en", "de")
    assert keras.distribution.distribution() is None


@pytest.mark.parametrize("kind", ["tables", "files"])
def test_the_reverse_model_is_scored_on_the_text_of_its_run(kind, recipe, tmp_path):
    """Its recipe names the same files, whose columns or endings are in the order of the other direction."""
    if kind == "tables":
        for name, rows in (("train.tsv", TEXT), ("val.tsv", TEXT[:5])):
            (tmp_path / name).write_text("".join(f"{one}\t{other}\n" for one, other in rows), "utf-8")
        tables = {"train": [str(tmp_path / "train.tsv")], "val": [str(tmp_path / "val.tsv")]}
        recipe = dataclasses.replace(recipe, **tables)
    corpus = recipe_corpus(recipe)
    for folder, own in ((tmp_path, recipe), (tmp_path / REVERSE, reversed_recipe(recipe))):
        record(folder, own)
        record_held_out(folder, own, corpus)
    text = own_corpus(Preset(tmp_path / REVERSE / "preset"), ["val"])
    assert text.pairs("val", "de", "en") == corpus.pairs("val", "de", "en")


def test_training_has_the_new_sentences_with_tagged_sources(run, recipe):
    folder, translator = run
    sources, targets = further = back_translate(recipe, recipe_corpus(recipe), folder, None, 0.0)
    assert set(targets) <= set(NEW)
    assert all(source.startswith(TAG) for source in sources)
    task = dataclasses.replace(recipe_task(recipe), further=further)
    batches = task.prepare(folder).batches
    found = [
        (row[row > 3].tolist(), line[line > 3].tolist())
        for inputs, labels, _ in map(batches.__getitem__, range(len(batches)))
        for row, line in zip(inputs["source"], labels, strict=True)
        if line.any()
    ]
    texts = [
        (translator.source_tokenizer.detokenize([row])[0], translator.target_tokenizer.detokenize([line])[0])
        for row, line in found
    ]
    tagged = [pair for pair in texts if pair[0].startswith(TAG)]
    assert len(texts) == len(TEXT) + len(targets)
    assert sorted(target for _, target in tagged) == sorted(targets)
    assert sorted(map(tuple, set(texts) - set(tagged))) == sorted(set(TEXT))


def test_a_stopped_run_goes_on_without_the_reverse_model(run, recipe, tmp_path):
    folder = shutil.copytree(run[0], tmp_path / "run")
    for later in ("preset", "checkpoints/epoch_0002", f"{REVERSE}/preset", f"{REVERSE}/checkpoints"):
        shutil.rmtree(folder / later)
    translator = train(recipe, folder, verbose=0, strategy=STRATEGY)
    assert not (folder / REVERSE / "preset").exists()
    for ours, theirs in zip(translator.get_weights(), run[1].get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_run_has_begun_with_its_reverse_model(run, recipe, tmp_path):
    folder = shutil.copytree(run[0], tmp_path / "run")
    shutil.rmtree(folder / "checkpoints")
    assert begun_recipe(folder) == recipe
    shutil.rmtree(folder / REVERSE / "checkpoints")
    assert begun_recipe(folder) is None


def test_what_is_translated_already_is_kept(run, recipe, tmp_path):
    folder, more = (
        shutil.copytree(run[0], tmp_path / "run"),
        shutil.copy(recipe.monolingual_target[0], tmp_path),
    )
    recipe = dataclasses.replace(recipe, monolingual_target=[more])
    corpus = recipe_corpus(recipe)
    ((done,), (chunk,)) = (
        list((folder / REVERSE).glob(f"translations_*/{name}")) for name in (DONE, "*.json")
    )
    chunk.write_text(json.dumps(["one", " ", "three"]))
    done.unlink()
    check_own_files(recipe, corpus)
    os.remove(more)  # it has been read
    began = time.perf_counter()
    found = back_translate(recipe, corpus, folder, lambda _, where: load(where / "preset"), began)
    assert done.exists()
    assert found == [[f"{TAG}one", f"{TAG}three"], NEW[::2]]


def test_no_more_is_translated_than_the_minutes_allow(run, recipe, tmp_path):
    folder, corpus = tmp_path / "run", recipe_corpus(recipe)
    recipe = dataclasses.replace(recipe, minutes=1.0, cooldown=0.2)
    (folder / REVERSE).mkdir(parents=True)
    reverse = load(run[0] / REVERSE / "preset")
    found = back_translate(recipe, corpus, folder, lambda *_: reverse, time.perf_counter() - 30)
    assert found == [[], []]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"languages": ["en", "de"], "source": "", "target": ""}, "monolingual_target"),
        ({"shards": "shards"}, "monolingual_target"),
        ({"preset": "image_text_tiny", "model": {}}, "monolingual_target"),
        ({"preset": "tuned"}, "monolingual_target"),
    ],
)
def test_what_it_is_not_for_is_refused(changes, name, recipe):
    assert name in message_of(check_recipe, dataclasses.replace(recipe, **changes))


def test_a_file_without_new_sentences_is_refused(recipe, tmp_path):
    (tmp_path / "more.de").write_text("Hunde\n\n", "utf-8")
    recipe = dataclasses.replace(recipe, monolingual_target=[str(tmp_path / "more.de")])
    assert "more.de" in message_of(check_own_files, recipe, recipe_corpus(recipe))
    assert "more.de" in message_of(train, recipe, tmp_path / "run", verbose=0)
    assert not (tmp_path / "run").exists()


def test_no_sentence_of_the_corpus_is_further_text(recipe, tmp_path):
    """Neither a further reference of the test set nor one with a space at its end: it would be learned."""
    files = write(tmp_path, [("a cat", "eine Katze ")], "test")
    (tmp_path / "other.de").write_text("ein Kater\n", "utf-8")
    (tmp_path / "more.de").write_text("eine Katze\nein Kater\nein Mann rennt\n", "utf-8")
    more, test = [str(tmp_path / "more.de")], [*files, str(tmp_path / "other.de")]
    corpus = recipe_corpus(dataclasses.replace(recipe, test=test, monolingual_target=more))
    assert corpus.monolingual_target() == ["ein Mann rennt"]


def test_a_folder_that_another_process_uses_is_refused_before_the_reverse_model_is_trained(recipe, tmp_path):
    with held(tmp_path / "run"):
        assert str(tmp_path / "run") in message_of(train, recipe, tmp_path / "run", verbose=0)
    assert not (tmp_path / "run" / REVERSE).exists()
