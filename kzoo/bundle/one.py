"""One recipe of a bundle, on the target: trained, scored on its test sets, timed."""

import csv
import dataclasses
import json
import platform
import sys
import threading
import time
from itertools import permutations
from pathlib import Path

import jax
import keras

import kzoo
from kzoo.bundle.corpora import languages, test_splits
from kzoo.bundle.target import DONE, end_with_parent
from kzoo.data.corpora import Corpus
from kzoo.errors import exits_on_errors
from kzoo.evaluation.directions import evaluate_directions, write_directions
from kzoo.evaluation.scores import evaluate, score_table, write_scores
from kzoo.files import write_json
from kzoo.presets import load
from kzoo.training.recipe import Recipe, read_recipe
from kzoo.training.recipe_corpus import recipe_corpus, recipe_directions
from kzoo.training.run_folder import keep_results
from kzoo.training.train import train


def train_and_score(name: str, folder: Path, overrides: list[str]):
    """Train a recipe of the bundle in the current folder, or resume it, and score the model.

    Args:
        name: the recipe's name in the bundle.
        folder: the run's folder. Finished work is not repeated.
        overrides: each `KEY=VALUE`.
    """
    listed = json.loads(Path("bundle.json").read_text("utf-8"))["recipes"]
    own = next(one["overrides"] for one in listed if one["name"] == name)
    recipe = read_recipe(Path("recipes", f"{name}.toml"), [*own, *overrides])
    if keep_results(folder / DONE, recipe):  # otherwise they may be of fewer epochs
        print("finished before")
        return
    train(recipe, folder, verbose=2)  # one line per epoch: a progress bar would fill the log
    began = time.perf_counter()
    _score(load(folder), recipe, recipe_corpus(recipe), folder)
    timing = {
        "recipe": dataclasses.asdict(recipe),
        "training_seconds": _training_seconds(folder / "history.csv"),
        "scoring_seconds": time.perf_counter() - began,
        "devices": [device.device_kind for device in jax.devices()],
        "versions": {module.__name__: module.__version__ for module in (kzoo, keras, jax)},
        "python": platform.python_version(),
    }
    write_json(folder / DONE, timing)


def _score(translator, recipe: Recipe, corpus: Corpus, folder: Path):
    """Write sacreBLEU's scores of all test sets; a multilingual model's of all directions, a file per set."""
    about = {
        "corpus": corpus.name,
        "licence": corpus.licence,
        **translator.search.entries(),
    }
    tests = test_splits(recipe, corpus)
    if not tests:
        print(f"corpus {corpus.name} has no test set: nothing is scored")
    elif recipe.languages:
        seen = set(recipe_directions(recipe))
        for split in tests:
            here = languages(recipe, corpus, split)
            tried = [pair for pair in permutations(here, 2) if pair in seen or not recipe.directions]
            scores = evaluate_directions(translator, corpus, split, tried, truncate=recipe.truncate)
            write_directions(scores, folder / f"scores.{split}.json", set(tried) - seen, **about)
    else:
        sides = (recipe.source, recipe.target)
        scores, translations = evaluate(translator, corpus, tests, *sides, truncate=recipe.truncate)
        print(score_table(scores))
        write_json(folder / "translations.json", translations)  # for other scores than these
        write_scores(scores, folder / "scores.json", **about)


def _training_seconds(history: Path) -> float:
    with open(history, newline="", encoding="utf-8") as file:
        return sum(float(row["seconds"]) for row in csv.DictReader(file))


if __name__ == "__main__":
    threading.Thread(target=end_with_parent, daemon=True).start()
    with exits_on_errors():
        train_and_score(sys.argv[1], Path(sys.argv[2]), sys.argv[3:])
