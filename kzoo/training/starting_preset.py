"""The trained preset that a recipe fine-tunes: copied into the run's folder, and loaded from there."""

import shutil
from pathlib import Path

import keras

from kzoo.files import whole_folder
from kzoo.presets import load
from kzoo.presets.shelf import is_builder, preset_family
from kzoo.sharing.integrity import preset_files
from kzoo.sharing.location import locate
from kzoo.training.recipe import Recipe
from kzoo.training.run_folder import START


def copy_start(recipe: Recipe, folder: Path):
    """Copy the recipe's trained preset into a run's folder, unless it is there.

    A resumed run needs that preset no more, and has the same vocabularies even if it was trained further.

    Raises:
        UserError: there is no such preset, it cannot be downloaded, or a file of it is missing or altered.
    """
    if (folder / START).is_dir():
        return
    files = preset_files(locate(recipe.preset))
    with whole_folder(folder / START) as copy:
        for name, path in files.items():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, copy / name)


def start_family(recipe: Recipe, folder: Path) -> str:
    """Return the module of `kzoo.presets` that builds models of the kind that the recipe trains.

    Raises:
        UserError: there is no such preset, it cannot be downloaded, or it is altered.
    """
    start = folder / START
    return preset_family(start if start.is_dir() and not is_builder(recipe.preset) else recipe.preset)


def load_start(recipe: Recipe, folder: Path) -> keras.Model:
    """Return the translator that `copy_start` copied, with the recipe's precision and its `model` arguments.

    Raises:
        UserError: the copy is altered, or the model does not take these arguments.
    """
    return load(folder / START, dtype=recipe.precision, **recipe.model)
