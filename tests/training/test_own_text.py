"""A user's own text in a recipe: where its files are, how it is split, and pairs that are too long."""

import dataclasses
import html
import json
import re
from pathlib import Path

import numpy as np
import pytest
from message_of import message_of
from sacrebleu import corpus_bleu, corpus_chrf
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.cli.run_scores import score_run
from kzoo.cli.text_to_score import check_same_held_out, directions_to_score, own_corpus
from kzoo.data import FeatureFile, open_corpus
from kzoo.data.held_out import DIGEST
from kzoo.engine.translator import CTranslate2Translator
from kzoo.hub import Preset
from kzoo.hub.location import SHELF
from kzoo.training import Recipe, prepare, read_recipe, train
from kzoo.training.corpus import check_own_files, odd_rows_table, recipe_corpus, record_held_out
from kzoo.training.long_sentences import cut_or_kept, rows_of
from kzoo.training.recipe_checks import check_recipe, make_recipe
from kzoo.training.run_folder import claim
from kzoo.training.tasks import recipe_task
from kzoo.training.trained_rows import ROWS, row_digests

TEXT = [("a dog runs", "ein Hund rennt"), ("a man sleeps", "ein Mann schläft"), ("dogs", "Hunde")] * 20
LONG = ("the dog " * 40, "der Hund")
BASE = {"preset": "pope_tiny", "corpus": "files", "source": "en", "target": "de"}
MODEL = {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "max_length": 40}


def write(folder, pairs, name="train"):
    files = [folder / f"{name}.en", folder / f"{name}.de"]
    for file, side in zip(files, zip(*pairs, strict=True), strict=True):
        file.write_text("".join(f"{text}\n" for text in side))
    return [str(file) for file in files]


def test_paths_are_relative_to_the_recipe(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "recipes"
    folder.mkdir()
    write(folder, TEXT)
    text = 'preset = "../runs/my"\ncorpus = "files"\nsource = "en"\ntarget = "de"\n'
    (folder / "my.toml").write_text(
        f'{text}train = ["train.en", "train.de"]\nval = ["/val.en", "~/val.de"]\n'
    )
    monkeypatch.setenv("HOME", "/home/me")
    recipe = read_recipe("recipes/my.toml", ['test=["a", "b"]'])
    assert (recipe.preset, recipe.train) == ("runs/my", ["recipes/train.en", "recipes/train.de"])
    assert (recipe.val, recipe.test) == (["/val.en", "/home/me/val.de"], ["a", "b"])
    monkeypatch.chdir(folder)
    assert read_recipe("my.toml").train == ["train.en", "train.de"]  # as runs have recorded them
    glyphs = text.replace("../runs/my", "./pope_tiny") + 'model = {font = "~/my.otf"}\n'
    (folder / "glyphs.toml").write_text(glyphs)
    assert read_recipe("glyphs.toml").preset == "./pope_tiny"  # the folder
    assert read_recipe("glyphs.toml").model == {"font": "/home/me/my.otf"}
    (folder / "my.toml").write_text(f'{text}train = "my.tsv"\n')  # one table
    (folder / "my.tsv").write_text("a dog\tein Hund\n")
    recipe = read_recipe("my.toml", ["val=my.csv", "test=0.1"])
    assert (recipe.train, recipe.val, recipe.test) == (["my.tsv"], ["my.csv"], 0.1)
    message = message_of(recipe_corpus, Recipe(**BASE, train=["none.en", "train.de"]))
    assert "none.en" in message and str(folder) in message


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"val": 0}, "val is 0"),
        ({"test": 1.5}, "test is 1.5"),
        ({"val": True}, "val is True"),
        ({"tokens": 10**22}, "tokens is 10"),
        ({"accumulate": 10**20}, "accumulate is 10"),
        ({"columns": [0, 1]}, "columns is [0, 1]"),
        ({"too_long": "cut"}, "truncate, drop"),
        ({"val": 5, "images": "features"}, "images"),
        ({"source": "", "target": "", "languages": ["en", "sr@latin"]}, "sr@latin"),
        ({"target": "JP"}, "'ja'"),
    ],
)
def test_what_cannot_be_is_named(changes, name):
    assert name in message_of(make_recipe, BASE | changes)


def test_a_recipe_s_columns_and_its_own_splits(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"{n}\tein Satz {n}\tsentence {n}\n" for n in range(100)))
    recipe = Recipe(**BASE, train=[str(table)], columns=[3, 2], val=10, test=0.2)
    corpus = recipe_corpus(recipe)
    assert corpus.splits == ("train", "val", "test")
    assert [len(corpus.sentences(split, "en")) for split in corpus.splits] == [70, 10, 20]
    english, german = corpus.pairs("test", "en", "de")
    assert [one.split()[-1] for one in english] == [one.split()[-1] for one in german]
    check_own_files(recipe, corpus)


def test_what_is_wrong_with_a_file_is_said_before_training(tmp_path):
    files = write(tmp_path, TEXT)
    recipe = Recipe(**BASE, train=files, val=files)
    check_own_files(recipe, recipe_corpus(recipe))
    (tmp_path / "train.de").write_text("only one\n")
    message = message_of(check_own_files, recipe, recipe_corpus(recipe))
    assert "train.en" in message and "train.de" in message


def task_of(tmp_path, too_long, **changes):
    train, val = write(tmp_path, [*TEXT, LONG]), write(tmp_path, [*TEXT[:3], LONG], "val")
    recipe = Recipe(
        **BASE | changes,
        model=MODEL,
        vocabulary_size=60,
        num_shapes=1,
        train=train,
        val=val,
        too_long=too_long,
    )
    return recipe_task(recipe, recipe_corpus(recipe))


def test_pairs_that_are_too_long_are_left_out_and_counted(tmp_path, capsys):
    task = task_of(tmp_path, "drop")
    run = task.prepare(tmp_path)
    assert [*map(len, (run.batches.source, run.batches.target, run.scorer.readings))] == [60, 60, 3]
    told = capsys.readouterr().out
    assert "train: 1 of 61" in told
    assert "val: 1 of 4" in told
    assert "truncate" in message_of(task_of(tmp_path, "error").prepare, tmp_path)


def test_what_to_raise_where_all_pairs_are_too_long_is_named(tmp_path):
    task = task_of(tmp_path, "drop", tokens=1)
    assert "model.max_length" in message_of(task.prepare, tmp_path)


def test_the_text_of_a_pair_that_is_too_long_is_of_the_pair_that_is_numbered(tmp_path):
    task = task_of(tmp_path, "error")
    texts = ["b", "c c c"], ["a a a", "d"]
    sides = [[text.split() for text in side] for side in texts]
    given = task.recipe, task.corpus, "val", ("en", "de"), texts, sides, 2
    message = message_of(cut_or_kept, *given)
    assert "'a a a'" in message and "pair 1 " in message


def test_rows_of_all_languages_are_left_out_together(tmp_path):
    write(tmp_path, [*TEXT, LONG])
    several = {"preset": "attention_bridge_m2m_tiny", "corpus": "files", "languages": ["en", "de"]}
    files = [str(tmp_path / "train.en"), str(tmp_path / "train.de")]
    recipe = Recipe(
        **several,
        model={"max_length": 40},
        train=files,
        val=files,
        vocabulary_size=40,
        too_long="drop",
        sentences=8,
        optimizer="sgd",
    )
    run = recipe_task(recipe, recipe_corpus(recipe)).prepare(tmp_path)
    assert [len(side) for one in run.batches.batches for side in (one.source, one.target)] == [60] * 4
    assert [len(one.readings) for one in run.scorer.directions.values()] == [60, 60]


def test_a_language_that_no_direction_has_is_aligned_too(tmp_path):
    files = [*write(tmp_path, TEXT), str(tmp_path / "train.fr")]
    Path(files[2]).write_text("un chien\n" * 59)
    several = {"preset": "attention_bridge_m2m_tiny", "corpus": "files", "languages": ["en", "de", "fr"]}
    recipe = Recipe(**several, directions=["en-de"], train=files, val=files)
    message = message_of(recipe_task, recipe, recipe_corpus(recipe))
    assert "train.en" in message and "train.fr" in message


def test_images_of_rows_that_are_left_out_are_too():
    array, kept = np.arange(12).reshape(4, 3), np.array([0, 3])
    features = FeatureFile(array, ("a", "b", "c", "d"), None, np.array([3, 2, 1, 0]))
    np.testing.assert_array_equal(rows_of(features, kept)[:], array[[3, 0]])
    np.testing.assert_array_equal(rows_of(array, kept), array[kept])
    assert rows_of(None, kept) is None


@pytest.mark.parametrize(("checkpoint", "epoch"), [("epoch_0002", 2), ("epoch_0000_batch_000007", 0)])
def test_another_rate_is_refused_with_the_way_to_train_on(checkpoint, epoch, tmp_path, monkeypatch):
    """A run that was stopped in its first epoch cannot be ended there."""
    recipe = Recipe(**BASE, epochs=4)
    monkeypatch.chdir(tmp_path.parent)
    claim(tmp_path, recipe)
    (tmp_path / "checkpoints" / checkpoint).mkdir(parents=True)
    (tmp_path / "checkpoints" / checkpoint / "state.json").write_text(json.dumps({"epoch": epoch}))
    message = message_of(claim, Path(tmp_path.name), dataclasses.replace(recipe, rate_factor=0.5))
    assert "rate_factor" in message
    assert ("epochs=2" in message) == bool(epoch) == ("epochs=" in message)
    assert (f"preset = '{tmp_path}'" in message) == bool(epoch)  # a recipe's paths are relative to its folder


def test_a_run_s_own_training_files_can_be_scored(tmp_path):
    parts = {name: write(tmp_path, TEXT, name) for name in ("train", "val", "test")}
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(Recipe(**BASE, **parts))))
    corpus = own_corpus(Preset(tmp_path / "preset"), ["train"])
    assert corpus.pairs("train", "en", "de")[0][:2] == ["a dog runs", "a man sleeps"]


def test_the_end_of_a_run_says_how_good_it_is(tmp_path, capsys):
    pairs = open_corpus("scenes").pairs("test", "en", "de")
    files = write(tmp_path, list(zip(*pairs, strict=True))[:12], "test")
    recipe = Recipe(**BASE, train=files, test=files)
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    record_held_out(tmp_path, recipe, recipe_corpus(recipe))
    (tmp_path / "preset").symlink_to(SHELF / "pope_small_multi30k_en_de")
    score_run(tmp_path, recipe, recipe_corpus(recipe))
    printed, page = capsys.readouterr().out, (tmp_path / "report.html").read_text("utf-8")
    translations = re.findall("^translation: (.*)", printed, re.M)
    assert len(translations) == 10
    assert all(html.escape(sentence) in page for sentence in set(pairs[0][:12]) if sentence in printed)
    scores = re.findall(r"^\| (\w+) \| ([\d.]+) \|", printed, re.M)
    translated = CTranslate2Translator(Preset(tmp_path / "preset")).translate(pairs[0][:12])
    expected = corpus_bleu(translated, [pairs[1][:12]]), corpus_chrf(translated, [pairs[1][:12]])
    assert scores == [(score.name, f"{score.score:.1f}") for score in expected]


def test_rows_held_out_of_a_text_that_has_changed_are_not_scored(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"sentence {n}\tein Satz {n}\n" for n in range(100)))
    recipe = Recipe(**BASE, train=[str(table)], val=10, test=10)
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    record_held_out(tmp_path, recipe, recipe_corpus(recipe))
    held_out = own_corpus(Preset(tmp_path / "preset"), []).pairs("test", "en", "de")
    assert held_out == recipe_corpus(recipe).pairs("test", "en", "de")
    table.write_text(table.read_text() + "".join(f"sentence {n}\tein Satz {n}\n" for n in range(100, 200)))
    trained_on = recipe_corpus(recipe).pairs("test", "en", "de")
    assert not set(trained_on[0]) <= set(held_out[0])
    message = message_of(own_corpus, Preset(tmp_path / "preset"), [])
    assert "--files" in message
    assert own_corpus(Preset(tmp_path / "preset"), ["train"]).splits == ("train", "val", "test")
    record_held_out(tmp_path, Recipe(**BASE | {"corpus": "scenes"}), open_corpus("scenes"))
    assert not (tmp_path / "held_out.json").exists()


def test_runs_that_hold_out_different_rows_are_not_compared(tmp_path, monkeypatch):
    presets, table = (
        [tmp_path / name / "preset" for name in ("before", "same", "after")],
        tmp_path / "pairs.tsv",
    )
    for count, preset in zip((100, 100, 300), presets, strict=True):
        table.write_text("".join(f"sentence {n}\tein Satz {n}\n" for n in range(count)))
        small_preset(preset)
        recipe = Recipe(**BASE, train=[str(table)], test=10)
        (preset.parent / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
        record_held_out(preset.parent, recipe, recipe_corpus(recipe))
    before, same, after = presets
    check_same_held_out(before, same, "test")
    asked = ["report", str(tmp_path / "page.html"), str(after), str(same)]
    message = str(CliRunner().invoke(app, asked).exception)
    assert str(same.parent) in message and "--files" in message
    recipe = Recipe(**BASE, train=[str(table)], test=[str(table)])  # its test set is nobody's training text
    (same.parent / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    check_same_held_out(same, after, "test")


def test_columns_are_those_of_a_table(tmp_path):
    text, table = write(tmp_path, TEXT), tmp_path / "pairs.tsv"
    table.write_text("a dog\tein Hund\n")
    recipe = Recipe(**BASE, train=text, columns=[1, 2])
    for start in (train, prepare):
        assert "columns" in message_of(start, recipe, tmp_path / "new")
    recipe = check_recipe(Recipe(**BASE, train=[str(table)], test=text, columns=[1, 2]))
    check_own_files(recipe, recipe_corpus(recipe))
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    assert own_corpus(Preset(tmp_path / "preset"), []).splits == ("test",)  # text alone


def test_another_project_s_test_set_is_not_a_run_s_own(tmp_path, monkeypatch):
    """Runs record paths as they were given, and resolve them from the current folder."""
    for project, sentence in (("one", "ein Hund"), ("other", "eine Katze")):
        (tmp_path / project).mkdir()
        (tmp_path / project / "test.en").write_text("a dog\n")
        (tmp_path / project / "test.de").write_text(f"{sentence}\n")
    recipe = Recipe(**BASE, test=["test.en", "test.de"])
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    monkeypatch.chdir(tmp_path / "one")
    record_held_out(tmp_path, recipe, recipe_corpus(recipe))
    assert own_corpus(Preset(tmp_path / "preset"), []).sentences("test", "de") == ["ein Hund"]
    monkeypatch.chdir(tmp_path / "other")
    assert str(tmp_path) in message_of(own_corpus, Preset(tmp_path / "preset"), [])


def test_files_that_scoring_does_not_read_may_be_gone(tmp_path):
    parts = {name: write(tmp_path, TEXT, name) for name in ("train", "test")}
    recipe = Recipe(**BASE, **parts, val=1)
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    for file in parts["train"]:
        Path(file).unlink()
    assert own_corpus(Preset(tmp_path / "preset"), []).splits == ("test",)
    assert "such" in message_of(own_corpus, Preset(tmp_path / "preset"), ["val"])


def test_which_directions_a_fine_tuned_preset_was_trained_on_is_unknown(tmp_path):
    """The preset that it was fine-tuned from may have been trained on all."""
    languages, scenes = ["en", "de", "zh"], open_corpus("scenes")
    for preset, unseen in (("attention_bridge_m2m_tiny", [("de", "zh"), ("zh", "de")]), ("my/preset", None)):
        recipe = Recipe(preset=preset, corpus="scenes", languages=languages, centre="en")
        (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
        found = directions_to_score(tmp_path / "preset", scenes, ["test"], languages)
        assert (len(found[1]), found[2]) == (6, unseen)


def test_rows_that_are_left_out_are_neither_trained_on_nor_held_out(tmp_path):
    table, rows = tmp_path / "pairs.tsv", [f"sentence {n}\tein Satz {n}" for n in range(100)]
    table.write_text("".join(f"{row}\n" for row in [*rows[:30], "a dog\t ", *rows]))
    recipe = Recipe(**BASE, train=[str(table)], val=10, test=10, clean=True)
    corpus = recipe_corpus(recipe)
    pairs = [row for split in corpus.splits for row in zip(*corpus.pairs(split, "en", "de"), strict=True)]
    assert sorted(map("\t".join, pairs)) == sorted(rows)
    task = recipe_task(recipe, corpus)
    task.record_rows(tmp_path)
    digests = row_digests(*corpus.pairs("train", "en", "de"))
    assert np.fromfile(tmp_path / ROWS, DIGEST).tolist() == digests.tolist()
    # Scoring holds out the same rows.
    (tmp_path / "recipe.json").write_text(json.dumps(dataclasses.asdict(recipe)))
    record_held_out(tmp_path, recipe, corpus)
    scored = own_corpus(Preset(tmp_path / "preset"), [])
    assert scored.pairs("test", "en", "de") == corpus.pairs("test", "en", "de")
    assert "31 are left out" in odd_rows_table(recipe, corpus)
    assert "31 would be left out" in odd_rows_table(dataclasses.replace(recipe, clean="report"), corpus)


def test_a_sentence_that_is_too_long_has_the_number_of_its_line(tmp_path):
    train = write(tmp_path, [*TEXT[:2], *TEXT, (LONG[0], "der Hund " * 40)])
    val = write(tmp_path, TEXT[:3], "val")
    recipe = Recipe(**BASE, model=MODEL, vocabulary_size=60, train=train, val=val, clean=True)
    message = message_of(recipe_task(recipe, recipe_corpus(recipe)).prepare, tmp_path)
    assert f"pair {len(TEXT) + 3} " in message


def test_check_prints_the_table_alone(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path, TEXT)
    Path("train.txt").write_text(Path("train.de").read_text())
    files = ["check", "train.en", "train.txt", "--from", "en", "--to", "de"]
    shown = CliRunner().invoke(app, [*files, 'val=["train.en", "train.txt"]'])
    assert shown.exit_code == 0 and f"{len(TEXT)} a sentence of val" in shown.stdout
    assert not [path for path in tmp_path.iterdir() if path.is_dir()]
    assert "your" in str(CliRunner().invoke(app, ["check", "pope_multi30k"]).exception)
    assert "recipe" not in str(CliRunner().invoke(app, ["check", "missing.en"]).exception)
    assert "true, false" in str(CliRunner().invoke(app, [*files, "clean=maybe"]).exception)


def test_rows_of_shards_and_of_images_are_not_left_out(tmp_path):
    recipe = Recipe(**BASE, train=write(tmp_path, TEXT), val=["val.en", "val.de"], clean=True)
    for key in ("shards", "images"):
        changed = dataclasses.replace(recipe, test=recipe.val, **{key: "x"})
        assert "clean" in message_of(check_recipe, changed)
