"""Fine-tuning: a run that begins with a trained preset's weights and vocabularies, and what it refuses."""

import json
import shutil
from dataclasses import replace as replaced
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from changed_tasks import quick_task
from message_of import message_of
from test_survival import Score

from kzoo.data import open_corpus
from kzoo.decoding import GNMT, SearchSettings
from kzoo.presets import attention_bridge_m2m_tiny, load, pope_tiny
from kzoo.text import MosesSubwordTokenizer, SubwordTokenizer, moses_text, train_subwords
from kzoo.training import Recipe, read_recipe
from kzoo.training.corpus import recipe_corpus
from kzoo.training.preparation import prepare
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.run import train_task
from kzoo.training.starting_preset import copy_start
from kzoo.training.tasks import recipe_task
from kzoo.training.trained_rows import ROWS, count_trained_rows, record_rows

PAIRS = {"train": 100, "val": 8}
SMALL = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "max_length": 64}
BRIDGE = {"encoder": "cnn", "embedding_dim": 8, "width": 8, "num_heads": 2, "hidden_dim": 8}


@pytest.fixture(scope="module")
def text():
    """English and German sentences of Scenes, by split and language."""
    corpus, found = open_corpus("scenes"), {}
    for split, count in PAIRS.items():
        pairs = zip(*corpus.pairs(split, "en", "de"), strict=True)
        short = [pair for pair in pairs if max(map(len, pair)) < 35][:count]
        found[split] = dict(zip(("en", "de"), zip(*short, strict=True), strict=True))
    return found


@pytest.fixture(scope="module")
def preset(text, tmp_path_factory):
    """A folder with a preset, as if trained: the weights are random, but what is loaded is these."""
    keras.utils.set_random_seed(3)
    subwords = train_subwords([*text["train"]["en"], *text["train"]["de"]], 300)
    translator = pope_tiny(SubwordTokenizer(subwords), dropout=0.3, **SMALL)
    translator.source_language, translator.target_language = "en", "de"
    translator.search = SearchSettings(3, GNMT(0.6), 50)
    folder = tmp_path_factory.mktemp("trained") / "preset"
    translator.save_to_preset(folder)
    return folder


@pytest.fixture(scope="module")
def recipe(preset, text, tmp_path_factory):
    folder, files = tmp_path_factory.mktemp("data"), {}
    for split, sides in text.items():
        files[split] = [str(folder / f"{split}.{language}") for language in sides]
        for path, sentences in zip(files[split], sides.values(), strict=True):
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(f"{sentence}\n" for sentence in sentences)
    return Recipe(
        preset=str(preset),
        corpus="files",
        source="en",
        target="de",
        **files,
        tokens=512,
        num_shapes=1,
        optimizer="sgd",
        rate=0.0,
        epochs=1,
    )


def same(ours, theirs):
    for one, other in zip(ours.get_weights(), theirs.get_weights(), strict=True):
        np.testing.assert_array_equal(one, other)


def unsearched(recipe):
    """Return a recipe's task whose validation translates nothing."""
    return quick_task(recipe, scorer=Score())


def train(recipe, folder, verbose=0, task=unsearched):
    return train_task(task, recipe, folder, verbose)


def killed_at_its_start(recipe, run):
    """Leave of a run what it has before its first step; return its model."""

    def kill():
        raise KeyboardInterrupt

    task = quick_task(recipe, 0, kill)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, run, task=lambda recipe: task)
    return task.prepared[0].translator


def test_it_begins_with_the_preset_s_weights_words_and_languages(recipe, preset, tmp_path):
    """At a rate of zero the trained model is the preset."""
    corpus = recipe_corpus(recipe)
    record_rows(preset.parent / ROWS, corpus.pairs("val", "en", "de"))  # what the preset was trained on
    tuned, before = train(recipe, tmp_path / "run", task=quick_task), load(preset)
    for split, count in PAIRS.items():
        assert count_trained_rows(tmp_path / "run" / "preset", corpus, split, [("en", "de")]) == count
    same(tuned, before)
    assert tuned.source_tokenizer.get_vocabulary() == before.source_tokenizer.get_vocabulary()
    assert (tuned.source_language, tuned.target_language) == ("en", "de")
    assert tuned.search == before.search
    assert not list((tmp_path / "run").glob("subwords*"))
    same(load(tmp_path / "run"), before)


def test_characters_that_the_vocabulary_lacks_are_told_and_never_written(recipe, tmp_path, capsys):
    """Trained on targets that end with a sign that the preset does not know."""
    priced = tmp_path / "train.de"
    priced.write_text(Path(recipe.train[1]).read_text("utf-8").replace("\n", " 5 €\n"), "utf-8")
    recipe = replaced(recipe, train=[recipe.train[0], str(priced)], rate=0.5, epochs=8)
    tuned = train(recipe, tmp_path / "run", verbose=2)
    told = [line for line in capsys.readouterr().out.splitlines() if "vocabulary lacks" in line]
    assert [line.partition(": ")[2] for line in told] == ["en 0 of 100; de 100 of 100 ('5' '€')"]
    texts = Path(recipe.train[0]).read_text("utf-8").splitlines()[:8]
    assert all("\u2047" not in text for text in tuned.translate(texts))


def lora_layers(file: Path) -> list[list[np.ndarray]]:
    """Return the kernel and the two factors of each layer with LoRA in a file of weights."""
    names, found = ("0", "lora_kernel_a", "lora_kernel_b"), []

    def visit(_, item):
        if isinstance(item, h5py.Group) and names[1] in item:
            found.append([item[name][()] for name in names])

    with h5py.File(file) as opened:
        opened.visititems(visit)
    return found


def test_lora_trains_factors_that_are_merged(recipe, preset, tmp_path):
    """Each kernel W of the preset becomes W + A·B, in the mean of the two best checkpoints."""
    tuned = train(replaced(recipe, rate=0.5, lora=2, epochs=2, average=2), tmp_path / "run")
    before = load(preset)
    expected = before.get_weights()
    files = sorted((tmp_path / "run/checkpoints").glob("epoch_*/checkpoint.weights.h5"))
    assert len(files) == 2
    for (kernel, a, b), (same, c, d) in zip(*map(lora_layers, files), strict=True):
        [number] = [number for number, weight in enumerate(expected) if np.array_equal(weight, kernel)]
        np.testing.assert_array_equal(same, kernel)
        assert a.shape[1] == b.shape[0] == 2 and b.any() and not np.array_equal(b, d)
        expected[number] = kernel + (a @ b + c @ d) / 2
    for weight, ours, theirs in zip(before.weights, tuned.get_weights(), expected, strict=True):
        if weight.name != "bias":  # these layers' biases learn, too
            np.testing.assert_allclose(ours, theirs, atol=1e-6)
    assert all(weight.trainable for weight in tuned.backbone.weights)
    for ours, theirs in zip(load(tmp_path / "run").get_weights(), tuned.get_weights(), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-3)  # in float16


def test_what_is_frozen_stays(recipe, preset, tmp_path):
    frozen = replaced(recipe, rate=0.5, freeze=["embedding", "enc*", "decoder_norm"])
    tuned, before = train(frozen, tmp_path / "run"), load(preset)
    weights = zip(before.weights, tuned.get_weights(), before.get_weights(), strict=True)
    moved = {weight.path.split("/")[0] for weight, *pair in weights if not np.array_equal(*pair)}
    assert moved == {"decoder_layer_0"}
    for names, named in ((["enc0"], "'enc0'"), (["*"], "freeze")):
        assert named in message_of(train, replaced(recipe, freeze=names), tmp_path / "refused")
    for changes in ({"lora": 2}, {"freeze": ["embedding"]}):
        assert [*changes][0] in message_of(check_recipe, replaced(recipe, preset="pope_tiny", **changes))


@pytest.mark.parametrize("changes", [{}, {"lora": 2}], ids=["all_weights", "lora"])
def test_a_stopped_run_goes_on_without_the_preset_to_the_same_weights(changes, recipe, preset, tmp_path):
    """As after a kill, when the preset has gone: the run has its own copy."""
    recipe = replaced(recipe, rate=0.1, epochs=2, model={"dropout": 0.2}, **changes)
    unbroken = train(recipe, tmp_path / "unbroken")
    weights = unbroken.get_weights(), load(preset).get_weights()
    assert not all(map(np.array_equal, *weights))
    assert unbroken.backbone.get_config()["dropout"] == 0.2
    moved = shutil.copytree(preset, tmp_path / "preset")
    recipe = replaced(recipe, preset=str(moved))
    train(replaced(recipe, epochs=1), tmp_path / "run")
    shutil.rmtree(moved)
    shutil.rmtree(tmp_path / "run" / "preset")
    same(train(recipe, tmp_path / "run"), unbroken)


def test_a_run_that_has_trained_nothing_takes_the_preset_as_it_is_now(recipe, preset, tmp_path):
    mine = shutil.copytree(preset, tmp_path / "preset")
    recipe = replaced(recipe, preset=str(mine))
    killed_at_its_start(recipe, tmp_path / "run")
    later = load(mine)
    later.set_weights([weight + 1 for weight in later.get_weights()])
    later.save_to_preset(mine)
    same(killed_at_its_start(recipe, tmp_path / "run"), load(mine))


def test_a_copy_of_a_preset_that_has_gone_is_kept(recipe, preset, tmp_path):
    """Of a run that was killed before its first checkpoint."""
    mine = shutil.copytree(preset, tmp_path / "preset")
    recipe = replaced(recipe, preset=str(mine))
    killed_at_its_start(recipe, tmp_path / "run")
    shutil.rmtree(mine)
    same(killed_at_its_start(recipe, tmp_path / "run"), load(preset))
    assert "'another'" in message_of(train, replaced(recipe, preset="another"), tmp_path / "run")


def test_the_preset_s_own_folder_is_refused(recipe, preset, tmp_path):
    mine = shutil.copytree(preset, tmp_path / "preset")
    before = sorted(path.name for path in mine.iterdir())
    assert str(mine) in message_of(train, replaced(recipe, preset=str(mine)), mine)
    assert sorted(path.name for path in mine.iterdir()) == before


def test_a_preset_of_several_sources_keeps_them(recipe, preset, tmp_path):
    """As OPUS-MT's `deu+eng`: it is tuned and scored with one, and still reads the others."""
    several = load(preset)
    several.source_language = "en+fr"
    several.save_to_preset(tmp_path / "preset")
    tuned = train(replaced(recipe, preset=str(tmp_path / "preset")), tmp_path / "run", task=quick_task)
    assert tuned.source_language == "en+fr"
    assert tuned.direction("fr", "de") == ("fr", "de")


@pytest.mark.parametrize(
    ("wrong", "name"),
    [
        ({"source": "fr", "corpus": "scenes", "train": [], "val": [], "test": []}, "'fr'"),
        ({"source": "de", "target": "en"}, "train.en"),  # files in the other order
        ({"model": {"dropout": 2.0}}, "'dropout': 2.0"),
        ({"model": {"num_layers": 1}}, "'num_layers'"),
        ({"model": {"dropuot": 0.1}}, "dropout"),
        ({"preset": "runs/none"}, "'runs/none'"),
        ({"preset": "pope_tniy"}, "pope_tiny"),
        ({"source": "", "target": "", "languages": ["en", "de"]}, "source"),
    ],
)
def test_what_the_preset_cannot_be_is_refused(wrong, name, recipe, tmp_path):
    assert name in message_of(train, replaced(recipe, **wrong), tmp_path / "run")


def test_an_altered_preset_is_refused(recipe, preset, tmp_path):
    """Also where a copy of it was made before; when the preset has gone, the copy is enough."""
    mine, copied = shutil.copytree(preset, tmp_path / "preset"), tmp_path / "copied"
    copy_start(replaced(recipe, preset=str(mine)), copied)
    with open(mine / "model.weights.h5", "r+b") as file:
        file.write(b"no")
    recipe = replaced(recipe, preset=str(mine))
    assert "model.weights.h5" in message_of(train, recipe, tmp_path / "run")
    assert "model.weights.h5" in message_of(copy_start, recipe, copied)
    shutil.rmtree(mine)
    copy_start(recipe, copied)
    assert (copied / "start" / "model.weights.h5").exists()


def test_vocabularies_of_its_own_are_refused(recipe, tmp_path):
    file = tmp_path / "recipe.toml"
    kept = ("preset", "corpus", "source", "target")
    file.write_text("".join(f"{key} = {json.dumps(getattr(recipe, key))}\n" for key in kept))
    assert read_recipe(file).preset == recipe.preset
    for override in ("vocabulary_size=500", "text=lowercased", "joint_vocabulary=false", "shards=here"):
        assert override.partition("=")[0] in message_of(read_recipe, file, [override])
    assert "shards" in message_of(prepare, recipe, tmp_path / "shards")
    mistyped = replaced(recipe, preset="pope_tniy")
    assert "pope_tiny" in message_of(prepare, mistyped, tmp_path / "shards")


def test_lowercased_presets_are_validated_in_lower_case(recipe, text, tmp_path):
    sides = {
        language: MosesSubwordTokenizer(
            train_subwords([moses_text(sentence, language) for sentence in text["train"][language]], 150),
            language,
            config_file=f"{side}_tokenizer.json",
        )
        for side, language in (("source", "en"), ("target", "de"))
    }
    translator = pope_tiny(*sides.values(), **SMALL)
    translator.save_to_preset(tmp_path / "preset")
    recipe = replaced(recipe, preset=str(tmp_path / "preset"))
    task = recipe_task(recipe)
    task.begin(tmp_path)
    run = task.prepare(tmp_path)
    assert run.scorer.lowercase
    assert run.translator.languages == ["en", "de"]  # the preset named none


def test_several_languages_are_those_of_the_preset_and_text_is_of_the_pairs(recipe, text, tmp_path):
    """There is no French text."""
    english = list(text["train"]["en"])
    tokenizers = {
        language: SubwordTokenizer(
            train_subwords(list(text["train"].get(language, english)), 150),
            config_file=f"{language}_tokenizer.json",
        )
        for language in ("en", "de", "fr")
    }
    translator = attention_bridge_m2m_tiny(tokenizers, **BRIDGE)
    translator.save_to_preset(tmp_path / "preset")
    one_direction = replaced(recipe, preset=str(tmp_path / "preset"))
    recipe = replaced(
        one_direction,
        source="",
        target="",
        languages=["en", "de", "fr"],
        directions=["en-de"],
        tokens=2048,  # the default
        sentences=16,
        batches_per_epoch=2,
        validation_sentences=2,
    )
    same(train(recipe, tmp_path / "run"), load(tmp_path / "preset"))
    other_order = replaced(recipe, languages=["en", "fr", "de"])
    for wrong, name in ((other_order, "en, de, fr"), (one_direction, "languages")):
        assert name in message_of(train, wrong, tmp_path / "other")
    assert not (tmp_path / "other" / "preset").exists()
