"""The trained preset that a recipe fine-tunes: found, checked, copied into the run's folder, and loaded."""

import fnmatch
import shutil
from pathlib import Path
from typing import Any

from kzoo.errors import UserError, nearest
from kzoo.files import atomic_folder
from kzoo.hub.preset import METADATA_FILE, Preset
from kzoo.presets.shelf import list_presets, load, locate
from kzoo.training.recipe import Recipe
from kzoo.training.recipe_checks import check_model
from kzoo.training.run_folder import START, saved_in
from kzoo.training.trained_rows import ROWS, copy_rows, recorded_in


def starting_preset(recipe: Recipe, folder: Path) -> Preset:
    """Return the trained preset that a recipe fine-tunes, or its copy in the run's folder.

    The copy is used if the run has a checkpoint, or if the preset no longer exists.

    Raises:
        UserError: there is neither.
    """
    if (start := folder / START).is_dir() and saved_in(folder / "checkpoints"):
        return Preset(start)
    try:
        return locate(recipe.preset)
    except UserError:
        if start.is_dir():
            return Preset(start)
        if "://" in recipe.preset:
            raise
        raise UserError(f"no preset {recipe.preset!r}; {nearest(recipe.preset, list_presets())}") from None


def check_start(recipe: Recipe, preset: Preset) -> bool:
    """Check that a recipe fits the trained preset that it fine-tunes, by the preset's small files.

    Returns:
        Whether its model reads pictures.

    Raises:
        UserError: it does not fit.
    """
    settings, config = preset.settings, preset.backbone["config"]
    pictures = bool(config.get("image_shape"))
    recurrent = preset.backbone["class_name"] == "RecurrentBackbone"
    tokenizers = [preset.object(file).get("config") or {} for file in settings["tokenizers"]]
    named = next((config["languages"] for config in tokenizers if config.get("languages")), ())
    check_model(recipe, settings.get("languages"), pictures, recurrent, named)
    return pictures


def copy_start(recipe: Recipe, folder: Path):
    """Copy the trained preset that a recipe fine-tunes into a run's folder.

    An earlier copy is kept if the run has a checkpoint, or if the preset no longer exists.

    Raises:
        UserError: there is no such preset, it cannot be downloaded, or a file of it is missing or altered.
    """
    start = folder / START
    preset = starting_preset(recipe, folder)
    if preset.place == start:
        return
    preset.check()
    with atomic_folder(start) as copy:
        for name in (METADATA_FILE, *preset.files):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(preset.folder / name, copy / name)
        if rows := recorded_in(preset.folder):
            copy_rows(rows, copy / ROWS)


def load_start(recipe: Recipe, folder: Path) -> Any:
    """Return the translator that `copy_start` copied, as the recipe trains it: its precision and its layers.

    Raises:
        UserError: the copy is altered; the recipe does not fit the model, or the model does not take these
            arguments, or has no such layers.
    """
    copy = Preset(folder / START, recipe.preset)  # errors name it as the recipe does
    check_start(recipe, copy)
    translator = load(copy, dtype=recipe.precision, **recipe.model)
    backbone = translator.backbone
    if recipe.lora:
        backbone.enable_lora(recipe.lora)
    named = {layer.name: layer for layer in backbone.layers if layer.weights}
    for pattern in recipe.freeze:
        found = fnmatch.filter(named, pattern)
        if not found:
            raise UserError(f"freeze: {copy} has no layer {pattern!r}; {nearest(pattern, list(named))}")
        for name in found:
            named[name].trainable = False
    if not backbone.trainable_weights:
        raise UserError("freeze names all layers, so that nothing would be trained: remove some")
    return translator
