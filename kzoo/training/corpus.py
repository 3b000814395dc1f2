"""A recipe's corpus, languages and directions, and the text that a run holds out."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from kzoo.data import open_corpus, open_files
from kzoo.data.cleaning import doubtful_rows, rows_table
from kzoo.data.corpora import Corpus
from kzoo.data.held_out import selected
from kzoo.data.language_pairs import check_weights, language_pairs, two_languages
from kzoo.data.text_files import Text, read_lines
from kzoo.errors import UserError
from kzoo.files import read_object, write_json
from kzoo.presets.builders import BUILDERS
from kzoo.training.recipe import Recipe

HELD_OUT = "held_out.json"  # in a run's folder: digests of the user's own text


def recipe_corpus(recipe: Recipe, text: Corpus | None = None) -> Corpus:
    """Return a recipe's corpus.

    Args:
        recipe: the recipe.
        text: the user's own training text, if `own_text` has opened it: it is not read and cleaned again.

    Raises:
        UserError: no corpus has that name, or one of its files is missing.
    """
    if recipe.corpus != "files":
        corpus = open_corpus(recipe.corpus)
    else:
        # A machine with the shards needs no training text.
        names = ("val", "test") if recipe.shards else ("train", "val", "test")
        parts = {name: part for name in names if isinstance(part := getattr(recipe, name), int | float)}
        corpus = own_text(recipe, [name for name in names if name not in parts])
        if text is not None:
            corpus = replace(corpus, read=partial(_read_of, text, corpus), odd_rows=text.odd_rows)
        corpus = selected(corpus, parts, clean=recipe.clean is True and not recipe.shards)
        if recipe.monolingual_target:
            further = cache(partial(_monolingual_target, recipe, corpus))
            corpus = replace(corpus, monolingual_target=further)
    return corpus.with_images(recipe.images) if recipe.images else corpus


def own_text(recipe: Recipe, splits: Sequence[str] = ("train",)) -> Corpus:
    """Return the user's own files of a recipe's splits as a corpus, with all rows. Each file is read once.

    Raises:
        UserError: a file is missing.
    """
    files = {name: getattr(recipe, name) or None for name in splits}
    others = {"columns": recipe.columns, "approved": recipe.approved}
    return open_files(**files, languages=text_languages(recipe), **others)


def _read_of(text: Corpus, corpus: Corpus, split: str, language: str) -> Text:
    """Return a text of a corpus, read from another if that has the split."""
    return (text if split in text.splits else corpus).read(split, language)


def check_own_files(recipe: Recipe, corpus: Corpus):
    """Read the user's own files in a recipe's corpus, to report errors before a backend is loaded.

    Raises:
        UserError: as for `recipe_corpus`; or a file is broken, empty, or not aligned with the others.
    """
    if recipe.corpus != "files":
        return
    for split in corpus.splits:
        corpus.sides(split, corpus.languages)
        corpus.more_references(split, corpus.languages[-1])
    if corpus.monolingual_target:
        corpus.monolingual_target()


def _monolingual_target(recipe: Recipe, corpus: Corpus) -> list[str]:
    """Return the sentences of `monolingual_target`, each once, without those that the corpus has.

    Raises:
        UserError: a file cannot be read, or no sentence is left.
    """
    known = set()
    for split in corpus.splits:
        for text in (corpus.sentences(split, recipe.target), *corpus.more_references(split, recipe.target)):
            known.update(map(str.strip, text))
    files = [Path(os.path.expanduser(file)) for file in recipe.monolingual_target]
    lines = (line.strip() for file in files for line in read_lines(file).sentences)
    found = [line for line in dict.fromkeys(lines) if line and line not in known]
    if not found:
        raise UserError(
            f"monolingual_target ({', '.join(map(str, files))}) has no sentence besides the corpus's"
        )
    return found


def odd_rows_table(recipe: Recipe, corpus: Corpus) -> str:
    """Return a table of the odd rows in the user's own training text, from which a recipe's corpus is made.

    Raises:
        UserError: as for `check_own_files`.
    """
    text = corpus.whole or corpus
    sides, *held_out = (text.sides(split, text.languages) for split in text.splits)
    found = text.odd_rows() + doubtful_rows(sides, text.languages, held_out)
    return rows_table(sides, found, recipe.clean is True)


def record_held_out(folder: Path, recipe: Recipe, corpus: Corpus):
    """Write the digests of the user's own validation and test text to the run's folder."""
    digests = {split: text_digest(corpus, split) for split in ("val", "test") if getattr(recipe, split)}
    if digests:
        write_json(folder / HELD_OUT, digests)
    else:
        (folder / HELD_OUT).unlink(missing_ok=True)  # of an earlier run that made no checkpoint


def recorded_held_out(run: Path) -> dict[str, str]:
    """Return the digests that `record_held_out` wrote; none without such text."""
    return read_object(run / HELD_OUT) if (run / HELD_OUT).exists() else {}


def text_digest(corpus: Corpus, split: str) -> str:
    """Return the SHA-256 of all text of a split."""
    sides = [corpus.sentences(split, language) for language in corpus.languages]
    sides += corpus.more_references(split, corpus.languages[-1])
    return hashlib.sha256(json.dumps(sides).encode()).hexdigest()


def recipe_directions(recipe: Recipe) -> list[tuple[str, str]]:
    """Return the (source, target) directions that a multilingual recipe trains.

    Raises:
        UserError: as for `language_pairs`.
    """
    chosen = recipe.centre, recipe.left_out, recipe.monolingual, recipe.directions
    return language_pairs(recipe.languages, *chosen)


def recipe_weights(recipe: Recipe, directions: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
    """Return each of the directions' share of the batches in a multilingual recipe; empty if it sets none.

    Raises:
        UserError: as for `two_languages` and `check_weights`.
    """
    weights = {two_languages(name, recipe.languages): weight for name, weight in recipe.pair_weights.items()}
    if weights:
        check_weights(weights, directions)
    return weights


def text_languages(recipe: Recipe) -> list[str]:
    """Return the languages whose text a recipe needs.

    A trained preset has its vocabularies, so it needs text only in the languages being fine-tuned.
    """
    if not recipe.languages:
        return [recipe.source, recipe.target]
    if recipe.preset in BUILDERS:
        return recipe.languages
    trained = {language for pair in recipe_directions(recipe) for language in pair}
    return [language for language in recipe.languages if language in trained]
