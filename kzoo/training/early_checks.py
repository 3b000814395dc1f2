"""What a recipe and small files tell, said before a backend is loaded, which takes seconds.

A run finds the same errors, but later.
"""

from dataclasses import replace
from pathlib import Path

from kzoo.data.corpora import Corpus
from kzoo.data.shards import INDEX, Shards, check_installed
from kzoo.errors import UserError
from kzoo.files import check_replaceable
from kzoo.presets.builders import BUILDERS, reads_glyphs, reads_pictures
from kzoo.presets.shelf import check_direction
from kzoo.text.glyphs import render_glyphs
from kzoo.training.corpus import (
    check_own_files,
    recipe_corpus,
    recipe_directions,
    recipe_weights,
    text_languages,
)
from kzoo.training.recipe import Recipe, shard_settings
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.run_folder import check_folder
from kzoo.training.starting_preset import check_start, starting_preset
from kzoo.training.trained_rows import ROWS


def check_early(recipe: Recipe, folder: Path, text: Corpus | None = None) -> Corpus:
    """Check a recipe, its preset, its corpus and the run's folder, as far as no model is needed.

    Args:
        recipe: as `read_recipe` returns it.
        folder: the run's folder; it may be missing.
        text: as in `recipe_corpus`.

    Returns:
        The corpus.

    Raises:
        UserError: they cannot be trained.
    """
    check_preset = _check_builder if recipe.preset in BUILDERS else _check_trained
    pictures = check_preset(recipe, folder)
    if recipe.languages:
        recipe_weights(recipe, recipe_directions(recipe))
    corpus = recipe_corpus(recipe, text)
    splits = ["train", recipe.validation]
    if recipe.shards:
        Shards(recipe.shards).require(**shard_settings(recipe))
        splits.remove("train")
    for split in splits:
        corpus.check(split, *text_languages(recipe))
        if pictures and (recipe.images or not corpus.read_images):  # else it draws pictures
            corpus.images(split)
    check_folder(folder, recipe)
    check_own_files(recipe, corpus)
    return corpus


def check_preparation(recipe: Recipe, folder: Path) -> Recipe:
    """Return a recipe whose text can be written to a folder as shards, with the folder as its `shards`.

    Raises:
        UserError: shards cannot hold its text, its files are missing, or the folder holds other files.
    """
    if recipe.languages:
        raise UserError("the recipe is multilingual, and shards hold one direction: train it without shards")
    recipe = check_recipe(replace(recipe, shards=str(folder)))  # as it will be trained
    shard_settings(recipe)
    check_installed()
    check_replaceable(
        folder, INDEX, "*.array_record", "*.lengths.npy", "subwords.*.model", "characters.json", ROWS
    )
    recipe_corpus(replace(recipe, shards="")).check("train", recipe.source, recipe.target)
    return recipe


def _check_builder(recipe: Recipe, folder: Path) -> bool:
    """Check a builder's font; return whether its model reads pictures."""
    if reads_glyphs(recipe.preset, recipe.model):
        render_glyphs([], font=recipe.model.get("font"))
    return reads_pictures(recipe.preset, recipe.model)


def _check_trained(recipe: Recipe, folder: Path) -> bool:
    """Check what a trained preset's small files tell; return whether its model reads pictures."""
    preset = starting_preset(recipe, folder)
    if preset.is_converted:  # it may have to be converted
        return False
    pictures = check_start(recipe, preset)
    if not recipe.languages:
        check_direction(preset, recipe.source, recipe.target)
    preset.check_overrides(recipe.model)
    preset.search.changed(**recipe.search_settings())
    return pictures
