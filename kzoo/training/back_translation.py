"""Further target text, with sources that a reverse model writes: the recipe's key `monolingual_target`.

Sennrich et al. 2016, "Improving Neural Machine Translation Models with Monolingual Data",
https://arxiv.org/abs/1511.06709. The sources begin with a tag, so that the model can tell them from human
ones: Caswell et al. 2019, "Tagged Back-Translation", https://arxiv.org/abs/1906.06442.
"""

import contextlib
import dataclasses
import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from kzoo.data.corpora import Corpus
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.files import atomic_write
from kzoo.training.recipe import KEYS, Recipe
from kzoo.training.run_folder import REVERSE

TAG = "\ue000 "  # a character for private use, which no text has
# Of the run's minutes: training the reverse model; the same and translating.
MINUTES_SHARE, TRANSLATED_SHARE = 0.25, 0.4
CHUNK = 2_000  # sentences that a killed run translates again, at most
DONE = "done"


def back_translate(
    recipe: Recipe, corpus: Corpus, folder: Path, train: Callable, began: float
) -> list[list[str]]:
    """Translate a recipe's further target text into the source language, unless the run's folder has that.

    Only the first sentences are translated if the recipe's minutes do not suffice for all.

    Args:
        recipe: the recipe.
        corpus: its corpus.
        folder: the run's folder.
        train: trains the reverse model: `train(recipe, folder)` returns its translator.
        began: `time.perf_counter()` at the start of the run.

    Returns:
        The tagged sources and the targets, without empty sources.

    Raises:
        UserError: as for `Corpus.monolingual_target` and `train`.
    """
    texts = corpus.monolingual_target()
    made = _folder(recipe, folder, texts)
    if not (made / DONE).exists():
        _translate(recipe, folder, made, texts, train, began)
    rows = [
        (TAG + source, target)
        for path, targets in _chunks(made, texts)
        if path.exists()
        for source, target in zip(json.loads(path.read_text("utf-8")), targets, strict=True)
        if source.strip()
    ]
    return [[row[side] for row in rows] for side in (0, 1)]


def _translate(recipe: Recipe, folder: Path, made: Path, texts: list[str], train: Callable, began: float):
    """Train the reverse model, and write its translations to the folder `made`."""
    print(f"training a model from {recipe.target} to {recipe.source} in {folder / REVERSE}")
    translator = train(reversed_recipe(recipe), folder / REVERSE)
    with contextlib.suppress(UserError):  # not for this kind of model: Keras translates, more slowly
        translator = CTranslate2Translator.of(translator)
    print(f"translating {len(texts):,} sentences from {recipe.target} to {recipe.source}")
    made.mkdir(exist_ok=True)
    for path, lines in _chunks(made, texts):
        if recipe.minutes and time.perf_counter() - began > 60 * TRANSLATED_SHARE * recipe.minutes:
            done = f"the time is up: {int(path.stem):,} sentences are translated"
            print(f"{done}; to use more, train in another folder with more minutes")
            break
        if not path.exists():
            translations = translator.translate(lines, truncate=True, split_sentences=False)
            with atomic_write(path) as whole:
                whole.write_text(json.dumps(translations, ensure_ascii=False), "utf-8")
    (made / DONE).touch()


def reversed_recipe(recipe: Recipe) -> Recipe:
    """Return the recipe of the reverse model."""
    return dataclasses.replace(
        recipe,
        source=recipe.target,
        target=recipe.source,
        monolingual_target=[],
        capitals=0.0,
        clean=False,  # the corpus is clean already, and its odd rows have been shown
        minutes=MINUTES_SHARE * recipe.minutes,
    )


def _folder(recipe: Recipe, folder: Path, texts: list[str]) -> Path:
    """Return the folder of the translations; with other settings or text, it is another one."""
    values = dataclasses.asdict(reversed_recipe(recipe)).items()
    values = {name: value for name, value in values if not KEYS[name].metadata["may_differ"]}
    digest = hashlib.sha256(json.dumps([values, texts]).encode()).hexdigest()[:16]
    return folder / REVERSE / f"translations_{digest}"


def _chunks(made: Path, texts: list[str]) -> Iterator[tuple[Path, list[str]]]:
    """Yield the files of the translations, each with its texts."""
    for first in range(0, len(texts), CHUNK):
        yield made / f"{first:09d}.json", texts[first : first + CHUNK]
