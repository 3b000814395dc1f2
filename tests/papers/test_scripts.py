"""The scripts around the package: what they import from it is there, and they refuse a wrong size."""

import ast
import dataclasses
import importlib
import json
import runpy
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from kzoo.data import Corpus, Extractor, write_features
from kzoo.errors import UserError
from kzoo.training import read_recipe
from training.attention_bridge.senteval import TaskScores

ROOT = Path(__file__).resolve().parents[2]
TABLES = sorted((ROOT / "training").glob("*/tables.py"))
SCRIPTS = [*sorted((ROOT / "benchmarks").rglob("*.py")), *TABLES]


def names_in(module: str) -> set[str]:
    """Return what a module has at its top, read from its source: many take seconds to import."""
    path = ROOT.joinpath(*module.split("."))
    path = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    source = path.read_text(encoding="utf-8")
    if "lazy_loader" in source:
        return set(importlib.import_module(module).__all__)
    names = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.Assign):
            names |= {part.id for target in node.targets for part in ast.walk(target) if hasattr(part, "id")}
    return names


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_what_a_script_imports_is_there(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module.startswith("kzoo"):
            assert {alias.name for alias in node.names} <= names_in(node.module), node.module


COMMANDS = {"attention_bridge": ["table2"], "glyph": ["table6"], "pope": []}
COMMANDS["image_text"] = ["photographs", "features"]


@pytest.mark.parametrize("path", TABLES, ids=lambda path: path.parent.name)
def test_an_unknown_size_is_refused(path):
    app = runpy.run_path(str(path))["app"]
    refused = CliRunner().invoke(app, [*COMMANDS[path.parent.name], "--size", "huge"])
    assert refused.exit_code == 2
    assert "'huge' is not one of 'tiny', " in " ".join(refused.output.replace("│", "").split())


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("pope", ["--seeds", "1,x"], "'1,x'"),
        ("image_text", ["scenes", "--seeds", "x"], "'x'"),
        ("attention_bridge", ["table1", "--settings", "m2m,m2m_momo"], "m2m_mono"),
        ("attention_bridge", ["table1", "--directions", "en-de,en-xx"], "'en-xx'"),
        ("attention_bridge", ["table1", "--directions", "en-de,en-en"], "pair"),
        ("attention_bridge", ["table1", "seed=2"], "seed"),
        ("attention_bridge", ["table1", "centre=de"], "centre"),
        ("attention_bridge", ["figure1", "left_out=de-fr"], "left_out"),
        ("attention_bridge", ["table2", "monolingual=false"], "monolingual"),
        ("attention_bridge", ["table2", 'languages=["en","de"]'], "languages"),
        ("attention_bridge", ["table1", "model.bridge=false"], "model.bridge"),
        ("attention_bridge", ["table1", "model={bridge=false}"], "model.bridge"),
        ("attention_bridge", ["table3", "model.penalty_weight=0.5"], "penalty_weight"),
        (
            "pope",
            ["--encodings", "pope,sin"],
            "'sin_tiny'",
        ),
        ("image_text", ["scenes", "source=id"], "source"),
        ("image_text", ["placeholders", "model.image_shape=[2]"], "image_shape"),
        ("glyph", ["table4", "model.architecture=fc_2"], "model.architecture"),
        ("glyph", ["table4", "model.glyph_options.num_features=8"], "glyph_options"),
        ("glyph", ["table4", "--encoders", "EMB,cnn_fc_rleu"], "cnn_fc_relu"),
        ("glyph", ["table7", "--encoders", "EMB,cnn_fc_relu:x"], "encoder"),
        ("glyph", ["table5", "--encoders", "EMB:256"], "encoder"),
        ("glyph", ["table6", "--encoders", "EMB:256"], "encoder"),
    ],
)
def test_wrong_lists_are_refused_before_anything_is_trained(script, arguments, message, tmp_path):
    found = runpy.run_path(str(ROOT / "training" / script / "tables.py"))
    for function in ("scores_of", "placeholder_features"):
        if function in found:
            found[function].__globals__[function] = None
    with pytest.raises(UserError, match=message):
        CliRunner().invoke(found["app"], [*arguments, "--runs", str(tmp_path)], catch_exceptions=False)


@pytest.mark.parametrize("option", ["--seeds", "--epochs"])
def test_numbers_below_one_are_refused(option):
    script = runpy.run_path(str(ROOT / "training/glyph/tables.py"))
    script["scores_of"].__globals__["scores_of"] = None
    refused = CliRunner().invoke(script["app"], ["table6", option, "0"])
    assert refused.exit_code == 2
    assert "equal to 1" in " ".join(refused.output.replace("│", "").split())


def test_pictures_are_shown_right_shuffled_and_not_at_all():
    script = runpy.run_path(str(ROOT / "training/image_text/tables.py"))
    shown = np.random.default_rng(1).integers(0, 256, (9, 8, 8, 3), "uint8")
    model = SimpleNamespace(image_shape=(8, 8, 3), extractor=None)
    found = script["pictures"](model, SimpleNamespace(images=lambda split: shown), "test")
    right, shuffled, nothing = (checked.rows for checked in found.values())
    assert list(found) == [", right pictures", ", shuffled", ", none"]
    np.testing.assert_array_equal(right, shown)
    assert sorted(picture.tobytes() for picture in shuffled) == sorted(picture.tobytes() for picture in shown)
    assert (shuffled != shown).any()
    assert (nothing == 127).all()
    assert script["pictures"](SimpleNamespace(image_shape=None), None, "test") == {"": None}


def test_photographs_are_scored_on_the_test_sets_with_features(tmp_path):
    """The paper has one test set of Multi30k; the pictures of the others are not in its data."""
    script = runpy.run_path(str(ROOT / "training/image_text/tables.py"))
    splits = ("train", "val", "test_2016_flickr", "test_2017_flickr")
    text = SimpleNamespace(sentences=["one", "two", "three"])
    corpus = Corpus("stub", ("en", "de"), splits, "", "", lambda split, language: text)
    recipe = read_recipe(ROOT / "training/image_text/image_text_base.toml")
    script["checked_features"].__globals__.update(
        recipe_corpus=lambda recipe: corpus,
        scored_once=lambda recipe, folder, score_all: score_all(None, folder / "scores.json"),
        pictures=lambda translator, corpus, split: {"": None},
        score=lambda *_: {},
    )
    rows, about = np.ones((3, 2), "float16"), Extractor("vgg19", "fc2", "imagenet")
    for split in splits[:3]:
        if split.startswith("test"):
            with pytest.raises(UserError, match=r"test_2016_flickr\.npy"):
                script["checked_features"](recipe, tmp_path)
        write_features(tmp_path / f"{split}.npy", lambda names: [rows], ["a", "b", "c"], about)
    assert script["checked_features"](recipe, tmp_path).shape == (3, 2)
    for images, tests in ((str(tmp_path), splits[2:3]), (None, splits[2:])):
        script["scores_of"](dataclasses.replace(recipe, images=images), tmp_path)
        assert tuple(json.loads((tmp_path / "scores.json").read_text())["scores"]) == tests


def test_a_table_has_means_spreads_and_the_columns_of_all_runs():
    script = runpy.run_path(str(ROOT / "training/image_text/tables.py"))
    counts = {"words": 14, "sentences": 10, "signatures": {"bleu": "tok:13a"}}
    runs = [{"bleu": bleu, "chrf2": 50.0, "accuracy": 60.0, **counts} for bleu in (20.0, 22.0, 24.0)]
    runs[0]["meteor"] = 30.0  # Java went away after the first
    printed = script["table"]({("image_text_tiny", "test, right pictures"): runs})
    assert printed.splitlines() == [
        "| model | test set | seeds | BLEU | chrF2 | accuracy on ambiguous words |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        "| image_text_tiny | test, right pictures | 3 | 22.0 ± 2.0 | 50.0 ± 0.0 | 60.0 ± 0.0 |",
        "",
        "14 ambiguous words in 10 sentences; `tok:13a`",
    ]


def test_the_paper_s_rows_stand_below_ours():
    """With its METEOR, which needs none of ours, and the difference in size."""
    script = runpy.run_path(str(ROOT / "training/image_text/tables.py"))
    run = {"bleu": 20.0, "chrf2": 50.0, "signatures": {"bleu": "tok:13a"}}
    results = {("image_text_tiny", "test, right pictures"): [run]}
    printed = script["table"](results, script["paper_rows"]("en", "de")).splitlines()
    assert printed[0] == "| model | test set | seeds | BLEU | chrF2 | METEOR |"
    assert printed[2] == "| image_text_tiny | test, right pictures | 1 | 20.0 | 50.0 |  |"
    assert printed[9] == (
        "| paper, Table I: image-text attention, Transformer | Multi30k |  | 37.39 |  | 55.9 |"
    )
    assert printed[11] == "The paper's own Transformers are of base size, ours tiny."
    assert len(script["paper_rows"]("id", "zh")) == 3
    assert script["paper_rows"]("en", "fr") == []
    found = runpy.run_path(str(ROOT / "training/pope/tables.py"))
    row = {"bleu": 30.0, "bleu_lowercased": 31.0, "signatures": {"bleu": "13a", "bleu_lowercased": "13a"}}
    for size, differs in (("tiny", True), ("big", False)):
        printed = found["table"]({"pope": [[row] * 4]}, size)
        assert "| paper: pope, Transformer (base), Multi30k, 10,000 steps (Aggarwal 2024) |  |" in printed
        assert (f"ours {size}." in printed) == differs
        assert len({line.count("|") for line in printed.splitlines() if line.startswith("|")}) == 1


def test_a_table_keeps_the_rows_of_other_calls(tmp_path):
    script = runpy.run_path(str(ROOT / "training/glyph/tables.py"))
    recipe = script["recipe_of"]("EMB", "tiny", None)
    script["add_row"](tmp_path / "table.json", "EMB", recipe, {"bleu": 1.0})
    script["add_row"](tmp_path / "table.json", "fc_1", recipe, {"bleu": 2.0})
    script["add_row"](tmp_path / "table.json", "EMB", recipe, {"bleu": 3.0})
    rows = script["results_in"](tmp_path / "table.json")
    assert {name: row["bleu"] for name, row in rows.items()} == {"EMB": 3.0, "fc_1": 2.0}
    assert rows["EMB"]["recipe"]["preset"] == "lookup_zh_en_tiny"


def test_the_base_size_drops_the_tiny_model_and_keeps_what_was_asked_for(tmp_path):
    script = runpy.run_path(str(ROOT / "training/image_text/tables.py"))
    asked = []

    def compare(planned, path):
        asked.extend(recipe.model for recipe, _ in planned)

    script["scenes"].__globals__["compare"] = compare
    script["scenes"](size="base", seeds="1", overrides=["model.num_layers=2", "model.dropout=0.3"])
    model = {"num_layers": 2, "dropout": 0.3}  # the first is the small model's too
    assert asked == [model, {"image_shape": [*script["PICTURE"]], **model}]


def test_sentence_embeddings_are_scored_once_and_a_damaged_file_shows_first(tmp_path):
    script = runpy.run_path(str(ROOT / "training/attention_bridge/tables.py"))
    recipe = script["whole_recipe"]("tiny", 1, None)
    tasks, scored = ["MR", "CR"], []

    def read(task):
        if task == "damaged":
            raise UserError("a column is missing")

    def evaluate(embed, asked, seeds):
        scored.extend(asked)
        return [TaskScores(asked[0], {"accuracy": [embed()]})]

    names = {"senteval_tasks": lambda: tasks, "senteval_examples": read, "evaluate_embeddings": evaluate}
    script["SentEval"].scores.__globals__.update(names)
    tasks.append("damaged")
    with pytest.raises(UserError, match="column"):
        script["SentEval"](tmp_path, "tiny", [1111])
    tasks.remove("damaged")
    senteval = script["SentEval"](tmp_path, "tiny", [1111])
    first = senteval.scores("GloVe-BoW", recipe, lambda: lambda: 60.0)
    tasks.append("MPQA")
    again = senteval.scores("GloVe-BoW", recipe, lambda: lambda: 70.0)
    assert [task.scores["accuracy"] for task in again] == [[60.0], [60.0], [70.0]]
    assert first == again[:2]
    assert scored == ["MR", "CR", "MPQA"]
    both_seeds = script["SentEval"](tmp_path, "tiny", [1111, 1112])
    other = both_seeds.scores("GloVe-BoW", recipe, lambda: lambda: 50.0)
    assert {task.scores["accuracy"][0] for task in other} == {50.0}
    assert script["best_of"]([again, other]) == again


def test_glove_vectors_are_the_same_again(random):
    script = runpy.run_path(str(ROOT / "training/attention_bridge/tables.py"))
    words = random.integers(0, 300, (500, 8)).tolist()  # pairs for several batches, whose order matters
    corpus = SimpleNamespace(sentences=lambda split, language: words)
    script["glove_bag"].__globals__["open_corpus"] = lambda name: corpus

    class Tokenizer:
        vocabulary_size = staticmethod(lambda: 300)
        __call__ = staticmethod(list)

    backbone = SimpleNamespace(matrix_shape=(10, 8))
    translator = SimpleNamespace(tokenizers={"en": Tokenizer()}, backbone=backbone)
    recipe = script["whole_recipe"]("tiny", 1, None)
    vectors = [script["glove_bag"](recipe, translator)(words[:20]) for _ in range(2)]
    np.testing.assert_allclose(*vectors, rtol=1e-5)
