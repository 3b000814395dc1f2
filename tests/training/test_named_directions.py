"""Fine-tuning a model whose vocabulary names languages in several directions."""

import csv
import shutil
from dataclasses import replace

import numpy as np
import pytest
from message_of import message_of
from named_languages import KINDS, make, sentence_piece_model

from kzoo.cli.run_scores import score_run
from kzoo.data import open_corpus
from kzoo.files import read_object
from kzoo.presets import load
from kzoo.text.languages import matching_code
from kzoo.text.vocabulary import UNKNOWN
from kzoo.training import Recipe, train
from kzoo.training.corpus import recipe_corpus
from kzoo.training.early_checks import check_early
from kzoo.training.run_folder import record
from kzoo.training.tasks import recipe_task

PAIRS = [("en", "de"), ("de", "cs")]


@pytest.fixture(params=KINDS)
def preset(request, tmp_path):
    make(request.param, sentence_piece_model()).save_to_preset(tmp_path / request.param, dtype="float32")
    return tmp_path / request.param


def recipe(preset, **settings) -> Recipe:
    """Low scores are found by validation's greedy search: one to compile, not two."""
    sizes = {
        "beam_size": 1,
        "epochs": 1,
        "steps": 3,
        "tokens": 512,
        "num_shapes": 2,
        "validation_sentences": 4,
        "too_long": "drop",
    }
    directions = ["-".join(pair) for pair in PAIRS]
    settings = {"languages": ["en", "de", "cs"], "directions": directions} | sizes | settings
    return Recipe(preset=str(preset), corpus="scenes", average=1, **settings)


def test_each_sentence_begins_with_its_language(preset, few_scenes, tmp_path):
    task = recipe_task(recipe(preset))
    task.begin(tmp_path / "run")
    batches = task.prepare(tmp_path / "run").batches
    translator = load(preset)
    pieces, names = translator.source_tokenizer.get_vocabulary(), translator.source_tokenizer.tokens
    codes = {code: matching_code(code, list(names)) for code in ("en", "de", "cs")}
    sides = {code: set(open_corpus("scenes").sentences("train", code)) for code in ("en", "de", "cs")}
    seen = set()
    for index in range(len(batches)):
        source, target = PAIRS[batches._plan[index][0]]
        inputs, labels, weights = batches[index]
        assert sorted(inputs) == ["source", "target"]
        for row in np.flatnonzero(weights.any(axis=1)):
            read, written = ([pieces[token] for token in part[row]] for part in (inputs["source"], labels))
            spoken = target if preset.name == "small" else source
            assert read[0] == names[codes[spoken]]
            if preset.name != "small":
                assert written[0] == names[codes[target]]
            for code, part in ((source, inputs["source"][row]), (target, labels[row])):
                if UNKNOWN in part:
                    continue
                assert translator.source_tokenizer.detokenize([part.tolist()])[0] in sides[code]
        seen.add((source, target))
    assert seen == set(PAIRS)


def test_validation_text_is_read_as_the_direction_translates_it(preset, few_scenes, tmp_path):
    task = recipe_task(recipe(preset))
    task.begin(tmp_path / "run")
    run = task.prepare(tmp_path / "run")
    for (source, target), score in run.scorer.directions.items():
        texts = open_corpus("scenes").sentences("val", source)[:4]
        expected = run.translator.sentences_read(texts, run.translator.direction(source, target))
        assert [one.tokens for one in score.readings] == [one.tokens for one in expected]


@pytest.mark.usefixtures("one_shape")
def test_it_is_trained_and_scored_in_each(preset, few_scenes, tmp_path):
    tuned, before = train(recipe(preset), tmp_path / "run", verbose=0), load(preset)
    changes = [np.abs(a - b).max() for a, b in zip(tuned.get_weights(), before.get_weights(), strict=True)]
    assert 0 < max(changes) < 0.1
    with open(tmp_path / "run/history.csv", newline="") as file:
        [row] = csv.DictReader(file)
    assert {f"val_bleu_{source}_{target}" for source, target in PAIRS} <= row.keys()
    codes = {code: matching_code(code, before.target_languages) for code in ("en", "de", "cs")}
    low = read_object(tmp_path / "run/preset/metadata.json")["low_scores"]
    assert set(low) == {f"{codes[source]}-{codes[target]}" for source, target in PAIRS}
    texts, languages = ["A dog runs."], {"source_language": "en", "target_language": "de"}
    assert load(tmp_path / "run").translate(texts, **languages) == tuned.translate(texts, **languages)


def test_a_language_that_it_lacks_is_refused(preset, few_scenes, tmp_path):
    wrong = recipe(preset, languages=["en", "fr"], directions=["en-fr"])
    assert "'fr'" in message_of(check_early, wrong, tmp_path / "run")
    assert "'fr'" in message_of(train, wrong, tmp_path / "run", 0)


def test_the_end_of_a_run_on_own_text_scores_its_directions(preset, tmp_path, capsys):
    files = [str(tmp_path / f"test.{code}") for code in ("en", "de", "cs")]
    for file in files:
        sentences = open_corpus("scenes").sentences("test", file[-2:])[:2]
        (tmp_path / file).write_text("".join(f"{sentence}\n" for sentence in sentences))
    own, run = replace(recipe(preset), corpus="files", train=files, test=files), tmp_path / "run"
    shutil.copytree(preset, run / "preset")
    record(run, own)
    score_run(run, own, recipe_corpus(own))
    table = capsys.readouterr().out
    assert all(f"| {source} |" in table for source, _ in PAIRS) and "2 directions" in table
