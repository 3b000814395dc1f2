"""What is chosen for the user's own text, and how `kzoo train` takes text files without a recipe."""

import itertools
import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
import sentencepiece
from message_of import message_of
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.data import open_corpus
from kzoo.text import train_subwords
from kzoo.training import read_recipe
from kzoo.training.capitals import with_capitals
from kzoo.training.choice import MANY_EPOCHS, SIZES, choose, languages_of, text_of
from kzoo.training.corpus import odd_rows_table, recipe_corpus
from kzoo.training.recipe_files import completed, text_values


def write(folder, name, lines):
    (folder / name).write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return str(folder / name)


@pytest.fixture
def files(tmp_path):
    english, german = (open_corpus("scenes").sentences("train", language)[:2500] for language in ("en", "de"))
    return [write(tmp_path, "train.en", english), write(tmp_path, "train.de", german)]


def chosen_for(files, *overrides):
    values, recipe = text_values(files, None, None, overrides)
    return choose(values, text_of(recipe))


def test_three_lines_are_a_recipe(files, tmp_path):
    recipe = write(
        tmp_path, "my.toml", ['source = "en"', 'target = "de"', 'train = ["train.en", "train.de"]']
    )
    chosen = read_recipe(recipe)
    assert (chosen.corpus, chosen.train, chosen.val, chosen.test) == ("files", files, 124, 124)
    assert chosen.preset == "rope_tiny" and chosen.optimizer == "noam"


def test_the_text_that_a_choice_was_made_for_is_not_read_again(files):
    values, given = text_values(files, None, None)
    text = text_of(given)
    recipe = completed(values, choose(values, text), "my text")
    expected = recipe_corpus(recipe)
    sides = {split: expected.pairs(split, "en", "de") for split in expected.splits}
    for file in files:
        Path(file).write_text("another text\n")
    corpus = recipe_corpus(recipe, text)
    assert {split: corpus.pairs(split, "en", "de") for split in corpus.splits} == sides
    assert odd_rows_table(recipe, corpus)


def test_minutes_in_a_recipe_are_those_of_the_command(files, tmp_path):
    lines = ['source = "en"', 'target = "de"', 'train = ["train.en", "train.de"]', "minutes = 30"]
    recipe = read_recipe(write(tmp_path, "my.toml", lines))
    values, given = text_values(files, None, None, ["minutes=30"])
    assert recipe == completed(values, choose(values, text_of(given)), "my.toml")
    assert (recipe.minutes, recipe.cooldown) == (30, 0.2)
    assert "cooldown" in message_of(text_values, files, None, None, ["minutes=30", "cooldown=0"])


def test_each_given_value_wins(files):
    overrides = ["epochs=3", "preset=sine_tiny", "val=10", "optimizer=adam", "vocabulary_size=100"]
    chosen = chosen_for(files, *overrides)
    assert not chosen.keys() & {override.partition("=")[0] for override in overrides}
    assert not chosen.keys() & {"warmup_steps", "rate_factor"}  # without effect for Adam's constant rate


def test_a_run_of_few_minutes_has_less_dropout(files, tmp_path):
    few = [chosen_for(files, f"minutes={minutes}")["model.dropout"].value for minutes in (1, 5)]
    assert 0 < few[0] < few[1] < 0.3
    for overrides in (
        ["minutes=120"],
        [],
        ["minutes=1", "preset=pope_tiny"],
        ["minutes=1", "model.dropout=0"],
    ):
        assert "model.dropout" not in chosen_for(files, *overrides)
    values, given = text_values(files, None, None, ["minutes=1", "model.width=64"])
    text = text_of(given)
    began = completed(values, choose(values, text), "my text")
    assert began.model == {"dropout": few[0], "width": 64}
    longer = values | {"minutes": 30.0}
    assert completed(longer, choose(longer, text, began), "my text") == replace(began, minutes=30.0)


@pytest.mark.parametrize("backend", ["tensorflow", "jax"])
def test_half_precision_is_chosen_where_the_backend_multiplies_it_fast(backend, files, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", backend)
    french = write(tmp_path, "train.fr", open_corpus("scenes").sentences("train", "fr")[:2500])
    cpu = Path("/proc/cpuinfo")
    fast = cpu.exists() and re.search(r"\b(amx_bf16|avx512_bf16)\b", cpu.read_text())
    for chosen in (chosen_for([*files, french]), chosen_for(files, "preset=rope_small")):
        assert ("precision" in chosen) == bool(backend == "tensorflow" and fast)
    assert "precision" not in chosen_for(files)  # its runs are short
    assert "precision" not in chosen_for(files, "preset=rope_small", "minutes=10")  # it compiles for minutes


def test_a_run_that_began_on_another_machine_keeps_its_precision(files, tmp_path, monkeypatch):
    monkeypatch.setenv("KERAS_BACKEND", "jax")  # which does not choose it
    french = write(tmp_path, "train.fr", open_corpus("scenes").sentences("train", "fr")[:2500])
    values, given = text_values([*files, french], None, None)
    text = text_of(given)
    began = replace(completed(values, choose(values, text), "my text"), precision="mixed_bfloat16")
    assert completed(values, choose(values, text, began), "my text") == began


@pytest.mark.parametrize("earlier", [0.0, 10.0])
def test_minutes_end_a_run_that_began_with_few_epochs(earlier, files):
    """Else its epochs would: one that has ended could not be trained longer."""
    values, given = text_values(files, None, None)
    text = text_of(given)
    began = replace(completed(values, choose(values, text), "my text"), minutes=earlier)
    values["minutes"] = 30.0
    assert completed(values, choose(values, text, began), "my text") == replace(
        began, minutes=30.0, epochs=MANY_EPOCHS
    )


@pytest.mark.parametrize("other", ["corpus=scenes", "shards=shards", "train=[]"])
def test_other_recipes_are_as_they_were(other, files):
    assert chosen_for(files, other) == {}


def test_a_trained_preset_of_several_languages_takes_text_in_those_that_are_trained(files, tmp_path):
    lines = [
        'preset = "attention_bridge_m2m_scenes"',
        'languages = ["en", "de", "zh"]',
        'train = ["train.en", "train.de"]',
        'directions = ["en-de"]',
    ]
    recipe = read_recipe(write(tmp_path, "my.toml", lines))
    assert recipe_corpus(recipe).languages == ("en", "de")


def test_a_trained_preset_keeps_its_vocabulary_and_is_trained_gently(files):
    chosen = chosen_for(files, "preset=pope_small_multi30k_en_de", "epochs=3")
    assert not chosen.keys() & {"preset", "vocabulary_size", "epochs", "warmup_steps", "capitals"}
    assert chosen["optimizer"].value == "adam"
    assert chosen["rate"].value < 1e-3  # the recipe's own, for a new model
    for file in files:
        write(Path(file).parent, Path(file).name, Path(file).read_text("utf-8").splitlines()[:100])
    fewer = chosen_for(files, "preset=pope_small_multi30k_en_de", "epochs=3")
    assert fewer["tokens"].value < chosen["tokens"].value  # so that there are enough updates
    assert chosen_for(files, "preset=./tuned", "optimizer=sgd").keys() >= {"val", "test"}
    values, _ = text_values(files, None, None, ["preset=pope_small_multi30k_en_de"])
    recipe = completed(values, chosen, "your own text")
    assert (recipe.optimizer, recipe.val) == ("adam", chosen["val"].value)


@pytest.mark.parametrize("size", SIZES[:-1])
def test_a_run_is_longer_than_its_warm_up(size):
    """Even if patience ends it as soon as it can. Sentences here have ten subwords."""
    updates_per_epoch = size.pairs * 10 / size.tokens
    assert size.patience * updates_per_epoch > size.warmup_steps


def test_a_short_run_takes_what_suits_less_text(files):
    steps = [chosen_for(files, *how)["warmup_steps"].value for how in ([], ["minutes=30"])]
    assert steps == [SIZES[1].warmup_steps] * 2
    assert chosen_for(files, "minutes=0.5")["warmup_steps"].value == SIZES[0].warmup_steps


@pytest.mark.parametrize(
    "lines", [["red dog"], ["a", "b", "c"], ["今天天气很好。", "我有一只猫。", "你好吗？"]]
)
def test_a_vocabulary_of_the_chosen_size_can_be_learned(lines, tmp_path):
    sides = [write(tmp_path, "t.en", lines * 20), write(tmp_path, "t.zh", list(reversed(lines)) * 20)]
    chosen = chosen_for(sides, "clean=false")
    share = chosen["capitals"].value if "capitals" in chosen else 0
    size = chosen["vocabulary_size"].value
    english, reverse = with_capitals([lines * 20, list(reversed(lines)) * 20], ["en", "zh"], share, seed=1)
    proto = train_subwords([*english, *reverse], size)
    assert sentencepiece.SentencePieceProcessor(model_proto=proto).vocab_size() <= size


@pytest.mark.parametrize("characters", [60, 600])
def test_a_language_of_many_characters_shares_no_subwords(characters, tmp_path):
    words = map("".join, itertools.product("bcdfgh", "aeiou", "lmnprst", "aeiou"))
    english = [" ".join(three) for three in zip(words, words, words, strict=True)]
    chinese = ["".join(chr(0x4E00 + (7 * n + i) % characters) for i in range(9)) for n in range(len(english))]
    files = [write(tmp_path, "train.zh", chinese), write(tmp_path, "train.en", english)]
    chosen = chosen_for(files)
    assert chosen["joint_vocabulary"].value == (characters == 60)
    assert "joint_vocabulary" not in chosen_for(files, "source_characters=seen")
    # More than English has words: learned from both.
    assert chosen_for(files, "vocabulary_size=1500")["joint_vocabulary"].value
    sides = [chinese + english] if characters == 60 else [chinese, english]
    for side in sides:
        train_subwords(side, chosen["vocabulary_size"].value)  # no error


def test_languages_are_named_by_endings_or_options(files):
    assert languages_of(["a/train.en.gz", "b.pt_BR"]) == ["en", "pt_br"]
    assert "--from" in message_of(languages_of, ["train.txt", "train.de"])
    assert "--from" in message_of(languages_of, ["pairs.tsv"])
    values, _ = text_values(["pairs.tsv"], "en", "de")
    assert values == {"train": ["pairs.tsv"], "source": "en", "target": "de"}
    _, recipe = text_values(["a.en", "a.de", "a.fr"], None, None)
    assert recipe.languages == ["en", "de", "fr"]


@pytest.mark.parametrize("languages", [("de", None), (None, "fr")])
def test_one_language_alone_is_refused(languages):
    """Else the files' endings would decide, and the model would translate another direction."""
    assert "--from and --to" in message_of(text_values, ["a.en", "a.de"], *languages)


def test_what_is_chosen_is_shown_and_a_resumed_run_keeps_its_values(files, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shown = CliRunner().invoke(app, ["train", "train.en", "train.de", "--show", "epochs=7"]).stdout
    assert "    tokens = 512 " in shown and "    epochs =" not in shown
    run = tmp_path / "runs/en_de"
    run.mkdir(parents=True)
    recorded = read_recipe(
        write(tmp_path, "my.toml", ['source="en"', 'target="de"', 'train=["train.en","train.de"]'])
    )
    earlier = vars(recorded) | {"vocabulary_size": 321}
    del earlier["clean"]  # a run of an older kzoo, which trained on all rows
    (run / "recipe.json").write_text(json.dumps(earlier))
    failed = CliRunner().invoke(app, ["train", "train.en", "train.de", "--show"]).stdout
    assert "321" not in failed  # nothing is trained yet
    (run / "checkpoints" / "epoch_0001").mkdir(parents=True)
    Path("train.en").write_text("A dog.\n")  # the text is not read to choose again
    shown = CliRunner().invoke(app, ["train", "train.en", "train.de", "--show"]).stdout
    assert "vocabulary_size = 321" in shown and 'clean = "report"' in shown


def test_a_recipe_that_leaves_nothing_to_choose_says_so():
    shown = CliRunner().invoke(app, ["train", "pope_multi30k", "--show"]).stdout
    assert "pope_multi30k" in shown
