"""Prepared shards: what `kzoo prepare` leaves, and training that reads them."""

import csv
import dataclasses
import gzip
import itertools
import json
import shutil
from html import escape

import numpy as np
import pytest
from message_of import message_of
from typer.testing import CliRunner

from kzoo.cli import app
from kzoo.data import Batches, ShardedBatches, open_corpus
from kzoo.text import CharacterTokenizer, SubwordTokenizer
from kzoo.training import Recipe, make_recipe, prepare, train
from kzoo.training.corpus import recipe_corpus
from kzoo.training.preparation import make_encoding, survey
from kzoo.training.tasks import recipe_task
from kzoo.training.trained_rows import count_trained_rows
from kzoo.training.vocabularies import learned_tokenizers

SMALL = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "max_length": 64}


@pytest.fixture(scope="module")
def sides():
    corpus = open_corpus("scenes")
    pairs = zip(*corpus.pairs("train", "en", "de"), strict=True)
    short = itertools.islice((pair for pair in pairs if max(map(len, pair)) < 35), 300)
    return [list(side) for side in zip(*short, strict=True)]


@pytest.fixture(scope="module")
def recipe(sides, tmp_path_factory):
    folder = tmp_path_factory.mktemp("text")
    for language, sentences in zip(("en", "de"), sides, strict=True):
        (folder / f"val.{language}").write_text("\n".join(sentences[:2]) + "\n", "utf-8")
        with gzip.open(folder / f"train.{language}.gz", "wt", encoding="utf-8") as file:
            file.write("\n".join(sentences) + "\n")
    return Recipe(
        preset="pope_tiny",
        corpus="files",
        source="en",
        target="de",
        train=[str(folder / f"train.{language}.gz") for language in ("en", "de")],
        val=[str(folder / f"val.{language}") for language in ("en", "de")],
        model=SMALL,
        vocabulary_size=300,
        tokens=512,
        num_shapes=1,
        warmup_steps=20,
        epochs=2,
    )


@pytest.fixture(scope="module")
def shards(recipe, tmp_path_factory):
    return prepare(recipe, tmp_path_factory.mktemp("prepared") / "shards", 1, pairs_per_shard=100)


def sentences(batches):
    """Return the source words of all batches' rows, sorted."""
    every = [batches[number][0]["source"] for number in range(len(batches))]
    return sorted(tuple(row[row != 0].tolist()) for batch in every for row in batch if row.any())


def test_shards_hold_the_words_that_training_without_them_has(shards, recipe, sides, tmp_path):
    (tokenizer,) = learned_tokenizers(recipe, tmp_path, *sides)
    assert (tmp_path / "subwords.joint.model").read_bytes() == (
        shards.folder / "subwords.joint.model"
    ).read_bytes()
    theirs = Batches(*(tokenizer(side) for side in sides), recipe.tokens)
    ours = ShardedBatches(shards, recipe.tokens)
    assert len(ours.shapes) == 7
    assert sentences(ours) == sentences(theirs)
    assert (ours.shapes, ours.num_tokens) == (theirs.shapes, theirs.num_tokens)


def test_shards_have_the_same_rows_in_capitals(recipe, tmp_path):
    recipe = dataclasses.replace(recipe, capitals=0.2)
    shards = prepare(recipe, tmp_path / "shards", 1)
    task = recipe_task(recipe, recipe_corpus(recipe))
    (tokenizer,) = task.learn(tmp_path)
    theirs = Batches(*(tokenizer(side) for side in task.sides), recipe.tokens)
    assert shards.pairs == len(task.sides[0]) > 300
    assert sentences(ShardedBatches(shards, recipe.tokens)) == sentences(theirs)
    assert "capitals" in message_of(shards.require, capitals=0.1)


def test_the_index_says_what_they_hold(shards, recipe):
    index = json.loads((shards.folder / "index.json").read_text())
    assert index["pairs"] == 300
    assert [shard["pairs"] for shard in index["shards"]] == [100, 100, 100]
    assert index["settings"]["joint_vocabulary"] is True
    assert index["text"]["files"] == ["train.en.gz", "train.de.gz"]
    assert shards.digest() != ""


def test_the_same_in_two_processes(shards, recipe, tmp_path):
    parallel = prepare(recipe, tmp_path / "shards", 2, pairs_per_shard=100)
    assert parallel.digest() == shards.digest()
    for path in shards.folder.iterdir():
        assert (parallel.folder / path.name).read_bytes() == path.read_bytes()


def test_training_from_shards(shards, recipe, tmp_path):
    """The training text itself is no longer needed, and shards may be moved, but for no others."""
    # Low scores are found by validation's greedy search: one to compile, not two.
    streamed = dataclasses.replace(recipe, shards=str(shards.folder), train=[], beam_size=1, bpe_dropout=0.1)
    train(streamed, tmp_path / "run", verbose=0)
    assert count_trained_rows(tmp_path / "run" / "preset", recipe_corpus(recipe), "val", [("en", "de")]) == 2
    moved = shutil.copytree(shards.folder, tmp_path / "moved")
    train(dataclasses.replace(streamed, shards=str(moved)), tmp_path / "run", verbose=0)  # goes on to its end
    first, second = csv.DictReader((tmp_path / "run" / "history.csv").open())
    assert float(second["loss"]) < float(first["loss"])
    assert float(second["tokens_per_second"]) > 0
    assert (tmp_path / "run" / "preset").is_dir()

    other = prepare(dataclasses.replace(recipe, seed=2), tmp_path / "other", 1)
    streamed = dataclasses.replace(streamed, shards=str(other.folder))
    assert "changed" in message_of(train, streamed, tmp_path / "run", verbose=0)


@pytest.mark.parametrize(
    ("key", "value"), [("vocabulary_size", 299), ("joint_vocabulary", False), ("source", "en-GB")]
)
def test_shards_for_another_recipe_are_refused(key, value, shards, recipe, tmp_path):
    wrong = dataclasses.replace(recipe, shards=str(shards.folder), **{key: value})
    message = message_of(train, wrong, tmp_path / "run")
    assert key in message and repr(value) in message
    assert not (tmp_path / "run").exists()


def test_tokenizers_without_a_backend_give_the_same_words(sides, recipe, tmp_path):
    for settings in ({"joint_vocabulary": False, "vocabulary_size": 150}, {"source_characters": "seen"}):
        recipe = dataclasses.replace(recipe, **settings)
        folder = tmp_path / str(len(settings))
        folder.mkdir()
        tokenizers = learned_tokenizers(recipe, folder, *sides)
        encoding = make_encoding(tokenizers, 1, 1)
        texts = [*sides[0], "", "  ", "Ünseen 漢字 </s> <s>  twice", "\u2028"]
        for tokenizer, words in zip(tokenizers, (encoding.source, encoding.target), strict=True):
            assert isinstance(tokenizer, CharacterTokenizer | SubwordTokenizer)
            assert words(texts) == tokenizer(texts)


@pytest.fixture
def small_sample(monkeypatch):
    """A sample of 100 pairs, read in blocks of 33."""
    for name, count in {"SAMPLE": 100, "BLOCK": 33}.items():
        monkeypatch.setattr(f"kzoo.training.preparation.{name}", count)


@pytest.mark.usefixtures("small_sample")
def test_characters_are_learned_from_all_sentences(recipe, sides, tmp_path):
    recipe = dataclasses.replace(recipe, source_characters="seen", vocabulary_size=200)
    shards = prepare(recipe, tmp_path / "shards", 1)
    characters = json.loads((shards.folder / "characters.json").read_text("utf-8"))
    assert set(characters) == set("".join(sides[0]))


def test_a_named_corpus(recipe, tmp_path):
    named = dataclasses.replace(recipe, corpus="scenes", train=[], val=[])
    assert prepare(named, tmp_path / "shards", 1).pairs == len(open_corpus("scenes").sentences("train", "en"))


def test_a_folder_below_the_user_s(recipe, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    assert prepare(recipe, "~/shards", 1).folder == tmp_path / "home/shards"
    assert not (tmp_path / "~").exists()


@pytest.mark.usefixtures("small_sample")
def test_the_sample_is_drawn_from_all(recipe):
    text = [(str(number), str(number)) for number in range(1000)]
    count, sample = survey(iter(text), recipe, lambda count: None)
    assert (count, len(set(sample))) == (1000, 100)
    assert 400 < np.mean([int(source) for source, _ in sample]) < 600
    assert survey(iter(text), recipe, lambda count: None) == (count, sample)
    assert survey(iter(text[:100]), recipe, lambda count: None)[1] == text[:100]


@pytest.mark.parametrize(
    ("files", "names"),
    [
        (["good", "short"], ["good", "short"]),
        (["good", "latin"], ["latin, line 2"]),
        (["good", "blank"], ["de side"]),
        (["good", "none"], ["none: "]),
        (["good"], ["aligned"]),
        ([], ["'train'"]),
    ],
)
def test_bad_text_leaves_nothing(files, names, recipe, tmp_path):
    texts = {"good": b"a\nb\n", "short": b"a\n", "latin": b"a\n\xe9\n", "blank": b"\n \n"}
    for name, text in texts.items():
        (tmp_path / name).write_bytes(text)
    recipe = dataclasses.replace(recipe, train=[str(tmp_path / name) for name in files])
    message = message_of(prepare, recipe, tmp_path / "shards", 1)
    assert all(name in message for name in names)
    assert {path.name for path in tmp_path.iterdir()} == texts.keys()


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({}, "contents"),
        (
            {"preset": "attention_bridge_m2m_tiny", "languages": ["en", "de"], "source": "", "target": ""},
            "shards",
        ),
    ],
)
def test_what_cannot_be_prepared_is_named(changes, name, recipe, tmp_path):
    (tmp_path / "letter").write_text("dear")
    assert name in message_of(prepare, dataclasses.replace(recipe, **changes), tmp_path, 1)


def test_shards_have_no_images(recipe):
    keys = dataclasses.asdict(recipe) | {"shards": "shards", "images": "features"}
    assert "images" in message_of(make_recipe, keys)


def test_from_the_command_line(recipe, tmp_path):
    path = tmp_path / "recipe.toml"
    keys = {**dataclasses.asdict(recipe), "vocabulary_size": 250}
    lines = [f"{key} = {json.dumps(keys[key])}" for key in ("preset", "corpus", "source", "target")]
    lines += [f"{key} = {json.dumps(keys[key])}" for key in ("train", "val", "vocabulary_size")]
    path.write_text("\n".join(lines))
    done = CliRunner().invoke(
        app, ["prepare", str(path), f"shards={tmp_path / 'shards'}", "--processes", "1"]
    )
    assert done.exception is None, done.output
    assert "300 " in done.output
    done = CliRunner().invoke(app, ["prepare", str(path)])
    assert "give -o FOLDER" in str(done.exception)


def test_a_translation_memory_is_prepared_as_text_is(shards, recipe, sides, tmp_path):
    """With a unit that has no German, of which a table tells."""
    pytest.importorskip("lxml")
    pairs = [*zip(*sides, strict=True), ("A dog.", "")]
    unit = '<tu><tuv xml:lang="en-GB"><seg>{}</seg></tuv><tuv xml:lang="de"><seg>{}</seg></tuv></tu>'
    units = (unit.format(*map(escape, pair)) for pair in pairs)
    memory = tmp_path / "m.tmx"
    memory.write_text(f'<tmx version="1.4"><header/><body>{"".join(units)}</body></tmx>', "utf-8")
    recipe = dataclasses.replace(recipe, train=[str(memory)])
    with pytest.warns(UserWarning, match="de +row 301: A dog."):
        found = prepare(recipe, tmp_path / "shards", 1, pairs_per_shard=100)
    assert (found.pairs, len(found)) == (shards.pairs, len(shards))
    assert sentences(ShardedBatches(found, recipe.tokens)) == sentences(ShardedBatches(shards, recipe.tokens))
    with pytest.warns(UserWarning, match="row 301") as told:  # in each pass over the text
        prepare(dataclasses.replace(recipe, capitals=0.1), tmp_path / "capitals", 1)
    assert sum("row 301" in str(warning.message) for warning in told) == 2
