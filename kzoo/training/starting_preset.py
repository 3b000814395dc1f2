"""The trained preset that a recipe fine-tunes: copied into the run's folder, and loaded from there."""

import shutil
from pathlib import Path

import keras

from kzoo.errors import UserError, nearest
from kzoo.files import whole_folder
from kzoo.hub.integrity import preset_files
from kzoo.hub.location import locate
from kzoo.presets import list_presets, load
from kzoo.training.checkpoints import saved_in
from kzoo.training.recipe import Recipe, check_languages
from kzoo.training.run_folder import START


def locate_start(recipe: Recipe) -> Path:
    """Return the folder of the trained preset that a recipe names, which is no builder.

    Raises:
        UserError: there is no such preset, or it cannot be downloaded.
    """
    try:
        return locate(recipe.preset)
    except UserError:
        if "://" in recipe.preset:
            raise
        raise UserError(f"no preset {recipe.preset!r}; {nearest(recipe.preset, list_presets())}") from None


def copy_start(recipe: Recipe, folder: Path):
    """Copy the recipe's trained preset into a run's folder.

    From the first checkpoint on, and if the preset is not there any more, the copy stays as it is.

    Raises:
        UserError: there is no such preset, it cannot be downloaded, or a file of it is missing or altered.
    """
    start = folder / START
    if start.is_dir() and saved_in(folder / "checkpoints"):
        return
    try:
        preset = locate_start(recipe)
    except UserError:
        if start.is_dir():
            return
        raise
    files = preset_files(preset)
    with whole_folder(start) as copy:
        for name, path in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)


def load_start(recipe: Recipe, folder: Path) -> keras.Model:
    """Return the translator that `copy_start` copied, with the recipe's precision and its `model` arguments.

    Raises:
        UserError: the copy is altered, the model does not take these arguments, or the recipe is of one
            direction and the model of several languages, or the other way round.
    """
    start = folder / START
    try:
        translator = load(start, dtype=recipe.precision, **recipe.model)
    except UserError as error:  # the user knows the preset by its own name
        raise UserError(str(error).replace(str(start), recipe.preset)) from None
    check_languages(recipe, translator.multilingual)
    return translator
