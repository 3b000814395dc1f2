"""The work of the tables' scripts, with training and translating left out."""

import dataclasses
import functools
import json
import math
import runpy
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import open_corpus
from kzoo.errors import UserError
from kzoo.evaluation.scores import SplitScores
from kzoo.training import make_recipe, read_recipe
from kzoo.training.optimizer import halved_rate
from kzoo.training.run_folder import claim
from training import paper_tables
from training.attention_bridge.senteval import TaskScores

TRAINING = Path(__file__).resolve().parents[2] / "training"
RECIPES = {
    "attention_bridge": lambda script: script["whole_recipe"]("tiny", 1, None),
    "glyph": lambda script: script["recipe_of"]("EMB", "tiny", None),
    "image_text": lambda script: read_recipe(TRAINING / "image_text/image_text_scenes.toml"),
    "pope": lambda script: read_recipe(TRAINING / "pope/pope_multi30k.toml"),
}

MULTILINGUAL = ("m2m", "m2m_mono", "centre_en", "centre_en_mono")


@pytest.fixture
def Work(monkeypatch):
    return functools.partial(_Work, monkeypatch)


class _Work:
    """A script whose training and translating are only noted; the names in `killed` end the process."""

    def __init__(self, monkeypatch, name: str):
        self.script = runpy.run_path(str(TRAINING / name / "tables.py"))
        self.recipe = RECIPES[name](self.script)
        self.done, self.killed = [], set()
        self.functions = self.script["scores_of"].__globals__
        monkeypatch.setattr(paper_tables, "train", self.noted("train", None))
        monkeypatch.setattr(paper_tables, "load", lambda folder: self.translator)
        for function in ("write_scores", "write_directions", "write_json"):
            if function in self.functions:
                self.functions[function] = self.noted(function, self.functions[function])
        corpus = SimpleNamespace(name="stub")
        self.functions |= {
            "load": lambda folder: SimpleNamespace(image_shape=None),
            "budget_of": lambda recipe, folder: {
                "updates": recipe.epochs * recipe.batches_per_epoch,
                "updates_a_direction": 0.0,
                "passes": 0.0,
                "final_rate": recipe.rate,
            },
            "open_corpus": lambda name: corpus,
            "recipe_corpus": lambda recipe: corpus,
            "splits_to_score": lambda corpus, *languages: ["test"],
            "evaluate": lambda model, corpus, splits, source, target, **_: (
                [self.scored(split, model.beam_size) for split in (*splits, "all")],
                {split: [f"with beam {model.beam_size}"] for split in splits},
            ),
            "evaluate_directions": lambda model, corpus, split, directions, **_: {
                direction: self.scored(split, model.beam_size) for direction in directions
            },
            "score": lambda model, recipe, corpus, split, images: dataclasses.asdict(
                self.scored(split, recipe.beam_size)
            ),
        }

    def noted(self, name, function):
        def called(*arguments, **options):
            self.done.append(name)
            if name in self.killed:
                raise KeyboardInterrupt
            if name == "train":
                self.translator = SimpleNamespace(image_shape=None, beam_size=arguments[0].beam_size)
            else:
                function(*arguments, **options)

        return called

    def scored(self, split, beam_size):
        return SplitScores(split, 1, float(beam_size), 0.0, 0.0, 0.0, {"bleu": "", "bleu_lowercased": ""})

    def bleu(self, folder, **changes):
        scores = self.script["scores_of"](dataclasses.replace(self.recipe, **changes), folder)
        rows = scores.values() if isinstance(scores, dict) else scores
        (bleu,) = {row["bleu"] for row in rows}
        return bleu


@pytest.mark.parametrize("name", list(RECIPES))
def test_scores_are_read_again_only_if_they_are_of_the_same_recipe(Work, name, tmp_path):
    work = Work(name)
    assert work.bleu(tmp_path, beam_size=4) == 4
    work.done.clear()
    assert work.bleu(tmp_path, beam_size=4) == 4
    assert not work.done
    assert work.bleu(tmp_path, beam_size=2) == 2
    assert "train" in work.done


@pytest.mark.parametrize("name", list(RECIPES))
def test_scores_are_not_trusted_beside_a_run_that_went_on(Work, name, tmp_path):
    work = Work(name)
    work.bleu(tmp_path)
    work.killed = {"train"}
    with pytest.raises(KeyboardInterrupt):
        work.bleu(tmp_path, epochs=1000)
    work.killed.clear()
    work.done.clear()
    work.bleu(tmp_path)
    assert "train" in work.done


def test_translations_are_those_of_the_scores(Work, tmp_path):
    work = Work("glyph")
    work.bleu(tmp_path, beam_size=4)
    work.killed = {"write_scores"}
    with pytest.raises(KeyboardInterrupt):
        work.bleu(tmp_path, beam_size=2)
    work.killed.clear()
    assert work.bleu(tmp_path, beam_size=4) == 4
    assert json.loads((tmp_path / "translations.json").read_text())["test"] == ["with beam 4"]


def test_table_1_keeps_the_settings_of_other_calls(Work, tmp_path):
    work = Work("attention_bridge")
    for settings, directions in (("m2m", ""), ("bilingual", "en-de"), ("bilingual", "de-en")):
        work.script["table1"](runs=tmp_path, settings=settings, directions=directions)
    found = json.loads((tmp_path / "table1_tiny.json").read_text())
    assert list(found) == ["recipe", "budget", "m2m", "bilingual"]
    assert len(found["m2m"]) == 12
    assert list(found["bilingual"]) == ["en-de", "de-en"]
    assert found["bilingual"]["de-en"]["bleu"] == 5
    assert (tmp_path / "m2m_tiny.png").exists()
    markdown = (tmp_path / "table1_tiny.md").read_text()
    assert "\n\nm2m (BLEU, lowercased)\n\n| from \\ to | cs | de | en | fr |\n| --- |" in markdown
    assert markdown.endswith(
        "bilingual (BLEU, lowercased)\n\n| from \\ to | de | en |\n| --- | ---: | ---: |\n"
        "| de |  | 0.0 (39.0) |\n| en | 0.0 (36.8) |  |\n\n``\n"
    )
    assert "embedding_dim 128 (512)" in markdown.splitlines()[0]
    # 22 epochs: M-2-M has 12 of the whole model's 16 directions, and a bilingual model one.
    for run, updates in {"m2m": "24,750", "bilingual_en-de": "2,068", "bilingual_de-en": "2,068"}.items():
        assert f"\n| {run}_tiny | {updates} |" in markdown
    # With another seed, the others do not belong beside it.
    work.script["table1"](runs=tmp_path, settings="m2m_mono", seed=2)
    kept = ["recipe", "budget", "m2m_mono"]
    assert list(json.loads((tmp_path / "table1_tiny.json").read_text())) == kept
    # Nor with another budget.
    (tmp_path / "other").mkdir()
    shutil.copy(tmp_path / "table1_tiny.json", tmp_path / "other")
    work.script["table1"](runs=tmp_path / "other", settings="m2m", seed=2, budget="model")
    kept = ["recipe", "budget", "m2m"]
    assert list(json.loads((tmp_path / "other/table1_tiny.json").read_text())) == kept


def test_each_setting_has_its_budget():
    script = runpy.run_path(str(TRAINING / "attention_bridge/tables.py"))
    sgd = ["optimizer=sgd", "rate=1.0", "tokens=1024", "epochs=22", "halve_after=15"]

    def batches(budget, size, overrides):
        whole = script["whole_recipe"](size, 1, overrides, budget)
        parts = [script["part_of"](whole, budget, **script["SETTINGS"][name]) for name in MULTILINGUAL]
        parts.append(script["bilingual"](whole, budget, "bilingual", "en-de", size))
        assert {(part.epochs, part.halve_after) for part in parts} == {(whole.epochs, whole.halve_after)}
        return whole, [part.batches_per_epoch for part in parts]

    # 12, 16, 6 and 10 directions, and one.
    assert batches("direction", "tiny", sgd)[1] == [1125, 1500, 563, 938, 94]
    assert batches("direction", "base", None)[1] == [0] * 5  # one pass over the text of these directions
    whole, each = batches("model", "tiny", sgd[:3])
    assert each == [10_000] * 5
    rates = [halved_rate(whole.rate, whole.halve_after, epoch) for epoch in range(whole.epochs)]
    assert rates == [1] * 5 + [1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32]
    assert "epochs" in message_of(script["whole_recipe"], "tiny", 1, ["epochs=3"], "model")


def test_a_run_s_budget_is_that_of_its_training(few_scenes, tmp_path):
    script = runpy.run_path(str(TRAINING / "attention_bridge/tables.py"))
    small = {"embedding_dim": 8, "width": 8, "hidden_dim": 8}
    model = {**small, "encoder": "cnn", "num_decoder_layers": 1}  # compiled sooner than the paper's
    recipe = make_recipe(
        {
            "preset": "attention_bridge_m2m_tiny",
            "corpus": "scenes",
            "languages": ["en", "de"],
            "sentences": 50,
            "num_shapes": 1,
            "batches_per_epoch": 4,
            "epochs": 3,
            "optimizer": "sgd",
            "rate": 0.5,
            "halve_after": 1,
            "accumulate": 2,
            "validation_sentences": 1,
            "beam_size": 1,  # low scores are found by validation's greedy search: one to compile, not two
            "vocabulary_size": 300,
            "model": model,
        },
        "test",
    )
    paper_tables.train(recipe, tmp_path, verbose=0)
    pairs = len(open_corpus("scenes").sentences("train", "en"))
    one_pass = 2 * math.ceil(pairs / 50)
    found = script["budget_of"](recipe, tmp_path)
    assert found == {
        "updates": 6,
        "updates_a_direction": 3,
        "passes": pytest.approx(12 / one_pass),
        "final_rate": pytest.approx(0.125),
    }


def test_the_bridge_paper_s_numbers_are_its_own():
    """Sums of Tables 1 and 3, and two rows of Table 2, typed from the paper once more."""
    paper = runpy.run_path(str(TRAINING / "attention_bridge/tables.py"))["PAPER"]
    into_english = {
        name: sum(scores[f"{code}-en"] for code in ("de", "cs", "fr"))
        for name, scores in paper["table1"].items()
    }
    assert into_english == {
        "bilingual": pytest.approx(39.00 + 35.89 + 49.54),
        "bilingual_bridge": pytest.approx(38.19 + 36.41 + 48.93),
        "centre_en": pytest.approx(39.39 + 37.20 + 48.49),
        "centre_en_mono": pytest.approx(40.17 + 37.30 + 50.41),
        "m2m": pytest.approx(40.68 + 38.42 + 49.92),
        "m2m_mono": pytest.approx(41.82 + 39.58 + 50.94),
    }
    assert {len(scores) for scores in (*paper["table1"].values(), *paper["table3"].values())} == {12}
    # "The improvements in BLEU range from 1.40 to a remarkable 4.43" (Section 4.2), of the best model.
    gains = [paper["table1"]["m2m_mono"][d] - score for d, score in paper["table1"]["bilingual"].items()]
    assert (min(gains), max(gains)) == (pytest.approx(1.39), pytest.approx(4.43))
    table2 = paper["table2"]
    assert {len(scores) for scores in table2.values()} == {22}
    assert [table2[name]["SNLI"] for name in table2] == [35.05, 61.75, 64.52, 65.12]
    assert [table2[name]["ObjNumber"] for name in table2] == [60.58, 70.01, 72.19, 73.29]


def test_the_base_size_is_the_bridge_paper_s_but_for_the_penalty():
    script = runpy.run_path(str(TRAINING / "attention_bridge/tables.py"))
    line = script["beside_the_paper"](script["whole_recipe"]("base", 1, None))
    assert line.endswith("differ in: penalty_weight 0.015625 (1.0), use_bias True (False).")
    line = script["beside_the_paper"](script["whole_recipe"]("tiny", 1, ["model.width=512"]))
    assert "embedding_dim 128 (512)" in line
    assert " width " not in line
    printed = ["model.penalty_weight=1", "model.use_bias=false"]  # Eq. 1 and 3
    line = script["beside_the_paper"](script["whole_recipe"]("base", 1, printed))
    assert line.endswith("differ in: nothing that the paper or its toolkit states.")


EMB = {"encoders": "EMB", "overrides": ["language_model_epochs=0"]}


class Scored:
    """What stands for SentEval's scores in a script."""

    def __init__(self, *_):
        pass

    def scores(self, *_):
        mrpc = TaskScores("MRPC", {"accuracy": [70.0], "f1": [80.0]})  # the paper has no F1
        return [TaskScores("MR", {"accuracy": [60.0, 62.0]}), mrpc]

    def of_bridge(self, name, recipe):
        return {f"{name}, flatten": self.scores(), f"{name}, mean": self.scores()}


@pytest.mark.parametrize(
    ("name", "table", "options", "stem", "row"),
    [
        (
            "attention_bridge",
            "figure1",
            {},
            "figure1_tiny",
            "| en-de | 0.0 (38.5) | 0.0 | 0.0 (36.8) |",
        ),
        ("attention_bridge", "table2", {}, "table2_tiny", "| MR | accuracy | 61.0 ± 1.4 |"),
        ("attention_bridge", "table3", {}, "table3_tiny", "| cs |  | 0.0 (28.5) | 0.0 (35.8) |"),
        ("glyph", "table4", EMB, "table4_tiny", "| EMB | 10.0 | 10.0 | 0.0 |  | 16.63 |"),
        ("image_text", "scenes", {}, "scenes_tiny_en_de", "| text_only_tiny | test | 3 | 5.0 ± 0.0 |"),
        ("pope", "table1", {"encodings": "pope"}, "table1_tiny", "| pope_tiny | 3 | 5.0 ± 0.0 |"),
    ],
)
def test_what_is_printed_is_written_beside_the_results(
    Work, name, table, options, stem, row, tmp_path, capsys
):
    work = Work(name)
    work.functions["SentEval"] = Scored
    work.script[table](runs=tmp_path, **options)
    markdown = (tmp_path / f"{stem}.md").read_text(encoding="utf-8")
    assert capsys.readouterr().out.endswith(markdown)
    assert "\n| --- |" in markdown
    assert f"\n{row}" in markdown
    assert (tmp_path / f"{stem}.json").exists()


def test_table_2_writes_each_task_s_scores(Work, tmp_path):
    work = Work("attention_bridge")
    work.functions["SentEval"] = Scored
    work.script["table2"](runs=tmp_path, seeds=2)
    written = json.loads((tmp_path / "table2_tiny.json").read_text())
    assert written["seeds"] == 2
    assert written["models"]["GloVe-BoW"][0] == {"task": "MR", "scores": {"accuracy": [60.0, 62.0]}}


def test_table_2_needs_files_of_a_task_before_it_trains(Work, tmp_path, monkeypatch):
    (tmp_path / "senteval" / "senteval").mkdir(parents=True)  # one level too deep
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    work = Work("attention_bridge")
    assert "files" in message_of(work.script["table2"], runs=tmp_path)
    assert not work.done


def test_senteval_results_of_another_version_are_named_by_their_file(Work, tmp_path, monkeypatch):
    monkeypatch.setenv("KZOO_DATA", str(tmp_path))
    (tmp_path / "senteval").mkdir()
    (tmp_path / "senteval" / "custrev.all").write_text("1 good\n0 bad\n" * 50)
    work = Work("attention_bridge")
    senteval = work.script["SentEval"](tmp_path, "tiny", [1])
    path = tmp_path / "senteval_GloVe-BoW_tiny_1_seeds.json"
    path.write_text(json.dumps({"seeds": [1], "recipe": {"unknown": 1}, "tasks": {}}))
    assert str(path) in message_of(senteval.scores, "GloVe-BoW", work.recipe, None)


def test_the_baseline_has_the_best_model_of_each_task():
    best_of = runpy.run_path(str(TRAINING / "attention_bridge/tables.py"))["best_of"]

    def model(*accuracies):
        return [TaskScores(str(n), {"accuracy": [a, a], "f1": [50 - a]}) for n, a in enumerate(accuracies)]

    models = [model(3, 1, 2), model(2, 3, 1), model(1, 2, 3)]
    assert best_of(models) == [models[0][0], models[1][1], models[2][2]]


def test_features_of_a_stopped_call_are_those_of_a_whole_one(tmp_path):
    script = runpy.run_path(str(TRAINING / "image_text/tables.py"))
    splits = {"train": 9, "val": 4}
    corpus = SimpleNamespace(splits=splits, sentences=lambda split, language: [""] * splits[split])
    functions = script["placeholder_features"].__globals__
    functions |= {"recipe_corpus": lambda recipe: corpus, "FC7": (6,)}
    recipe, noise = SimpleNamespace(source="en"), script["NOTHING_TO_SEE"]["noise"]
    drawn = []

    def stopped(random, shape):
        drawn.append(shape)
        if len(drawn) == 6:
            raise KeyboardInterrupt
        return noise(random, shape)

    with pytest.raises(KeyboardInterrupt):
        script["placeholder_features"](recipe, stopped, tmp_path / "stopped", "noise")
    features = {}
    for folder in ("stopped", "whole"):
        script["placeholder_features"](recipe, noise, tmp_path / folder, "noise")
        features[folder] = [np.load(tmp_path / folder / f"{split}.npy") for split in splits]
    for resumed, whole in zip(*features.values(), strict=True):
        np.testing.assert_array_equal(resumed, whole)
    train, val = features["whole"]
    assert train.shape == (9, 6)
    assert len(np.unique(np.concatenate([train, val]), axis=0)) == 13


def test_taggers_are_trained_again_for_other_vectors_only():
    script = runpy.run_path(str(TRAINING / "glyph/tables.py"))
    recipe = script["recipe_of"]("EMB", "tiny", None)
    row = {"recipe": dataclasses.asdict(recipe)}
    has_vectors_of = script["has_vectors_of"]
    assert has_vectors_of(row, recipe, "x.json")
    assert has_vectors_of(row, dataclasses.replace(recipe, beam_size=1, length_penalty=0.0), "x.json")
    assert not has_vectors_of(row, dataclasses.replace(recipe, epochs=11), "x.json")
    assert not has_vectors_of(None, recipe, "x.json")
    assert "x.json" in message_of(has_vectors_of, {**row, "recipe": {"unknown": 1}}, recipe, "x.json")


def test_a_table_has_vectors_of_seen_characters_and_an_encoder_of_all():
    script = runpy.run_path(str(TRAINING / "glyph/tables.py"))
    tokenizer = SimpleNamespace(token_to_id={"我": 2, "们": 0, "河": 1}.get)

    def vectors(source):
        translator = SimpleNamespace(
            backbone=SimpleNamespace(source_embedding=source), source_tokenizer=tokenizer
        )
        return script["character_vectors"](translator, ["我", "河", "们"], seen={"我", "们"})

    table = np.arange(6, dtype="float32").reshape(3, 2)
    found = vectors(SimpleNamespace(embeddings=table))
    assert {character: vector.tolist() for character, vector in found.items()} == {"我": [4, 5], "们": [0, 1]}
    script["character_vectors"].__globals__["render_glyphs"] = lambda characters: [*map(ord, characters)]
    encoded = vectors(SimpleNamespace(encoder=lambda glyphs: np.array(glyphs, "float32")[:, None]))
    assert {character: vector[0] for character, vector in encoded.items()} == {c: ord(c) for c in "我河们"}


def test_figure_1_has_three_bars_a_direction_and_table_3_two_models(Work, tmp_path):
    work = Work("attention_bridge")
    drawn = []
    work.functions["plot_systems"] = lambda bars, path: drawn.append((bars, path))
    work.script["figure1"](runs=tmp_path)
    ((bars, path),) = drawn
    assert [len(bleu) for bleu in bars.values()] == [12, 12, 12]
    assert path == tmp_path / "figure1_tiny.png"
    assert work.done.count("train") == 1 + 6 + 12
    work.done.clear()
    work.script["table3"](runs=tmp_path, directions="en-de,de-en")
    assert work.done.count("train") == 4
    recipes = [json.loads((run / "scores.json").read_text())["recipe"] for run in tmp_path.glob("*penalty*")]
    assert [recipe["model"]["penalty_weight"] for recipe in recipes] == [0.0] * 2
    assert sorted(recipe["directions"] for recipe in recipes) == [["de-en"], ["en-de"]]


@pytest.mark.parametrize(
    ("name", "minutes", "where"),
    [
        ("pope_multi30k", 35, "on two idle CPU cores (AMD EPYC)"),
        ("pope_multi30k_base", 7, "on a shared NVIDIA H200"),
        ("attention_bridge_m2m_tiny", 144, "on two CPU cores (Intel Xeon, JAX), shared with other work"),
        ("glyph_zh_en_tiny", 30, "on one busy CPU core"),
        ("image_text_scenes", 10, "on one of two busy CPU cores"),
        ("demo_scenes", 1, "on two idle CPU cores"),
        ("attention_bridge_m2m", None, ""),
        ("glyph_zh_en", None, ""),
    ],
)
def test_a_recipe_s_time_is_read(name, minutes, where):
    assert paper_tables.recipe_time(name) == (minutes, where)


def test_the_estimate_is_of_what_is_left(tmp_path, capsys):
    """A finished run, one with a third of its epochs, a short one, and one that has the paper's steps."""
    recipe = read_recipe("pope_multi30k")  # 33 epochs, 35 minutes
    runs = [(recipe, tmp_path / "finished"), (recipe, tmp_path / "stopped")]
    runs.append((dataclasses.replace(recipe, epochs=11), tmp_path / "short"))
    (tmp_path / "finished").mkdir()
    (tmp_path / "finished" / "scores.json").write_text(json.dumps({"recipe": dataclasses.asdict(recipe)}))
    (tmp_path / "stopped" / "checkpoints" / "epoch_0011").mkdir(parents=True)

    def printed(*arguments):
        paper_tables.print_estimate(*arguments)
        return capsys.readouterr().out

    assert "2 of 3 runs to train: about 35 minutes in all on two idle" in printed("pope_multi30k", runs)
    assert "about 1.6 hours" in printed("pope_multi30k", runs, 61)
    assert "0 of 1 runs" in printed("pope_multi30k", runs[:1])
    assert "needs a GPU" in printed("glyph_zh_en", [(read_recipe("glyph_zh_en"), tmp_path / "base")])
    whole = read_recipe("attention_bridge_m2m_tiny")
    part = dataclasses.replace(whole, batches_per_epoch=whole.batches_per_epoch // 4)
    assert "about 36 minutes" in printed("attention_bridge_m2m_tiny", [(part, tmp_path / "part")])


def test_results_are_removed_only_when_their_run_goes_on(tmp_path):
    recipe = make_recipe({"preset": "pope_tiny", "corpus": "scenes", "source": "en", "target": "de"})
    claim(tmp_path, recipe)
    (tmp_path / "checkpoints" / "epoch_0004").mkdir(parents=True)
    scores = tmp_path / "scores.json"
    scores.write_text(json.dumps({"recipe": dataclasses.asdict(recipe)}))
    assert paper_tables.keep_results(scores, recipe)
    with pytest.raises(UserError, match="rate_factor"):
        paper_tables.keep_results(scores, dataclasses.replace(recipe, rate_factor=9.0))
    assert scores.exists()
    assert not paper_tables.keep_results(scores, dataclasses.replace(recipe, epochs=99))
    assert not scores.exists()
    scores.write_text("{}")  # of `kzoo evaluate -o`, which writes no recipe
    assert str(scores) in message_of(paper_tables.keep_results, scores, recipe)
    assert scores.exists()
