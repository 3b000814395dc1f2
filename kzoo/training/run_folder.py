"""A run's folder: only one process uses it, and it records the recipe to resume with."""

import contextlib
import dataclasses
import json
import os
import re
import socket
from collections.abc import Iterator
from pathlib import Path

from kzoo.errors import UserError
from kzoo.files import file_lock, read_object, remove_folder, write_json
from kzoo.hub.location import MARKS, RECIPE_FILE
from kzoo.training.recipe import CONSTANT_RATE, KEYS, NOAM, Recipe
from kzoo.training.recipe_checks import make_recipe

VOCABULARIES = ("subwords.*.model", "characters.json")
START = "start"  # the trained preset that is fine-tuned
REVERSE = "reverse"  # the run of the reverse model, and its translations
LANGUAGE_MODEL = ("language_model", "language_model_checkpoints")  # trained before the translator
RATES = {"optimizer"} | {
    name for name, key in KEYS.items() if {NOAM, CONSTANT_RATE} & {*key.metadata["uses"]}
}
# Numbers may have more digits.
CHECKPOINT = re.compile(r"epoch_(?P<epoch>\d{4,})(_batch_(?P<batch>\d{6,}))?")
LOCK = ".lock"  # stays when a run ends


@contextlib.contextmanager
def lock(folder: Path) -> Iterator[None]:
    """Lock a run's folder until the block or this process ends; create the folder if missing.

    Raises:
        UserError: another process trains there, the folder holds a preset, or it cannot be written.
    """
    _check_no_preset(folder)
    with file_lock(folder, folder / LOCK, "trains here; stop it, or give another folder"):
        with contextlib.suppress(OSError):  # on a full disk, the lock works without this text
            (folder / LOCK).write_text(f"process {os.getpid()} on {socket.gethostname()}\n")
        yield


def claim(folder: Path, recipe: Recipe):
    """Write the recipe into a folder, or check that the run in it can resume with this recipe.

    If nothing is trained yet, the run starts over and learns its vocabularies from the current text.

    Raises:
        UserError: the folder holds a trained preset without its checkpoints, a run of another recipe, an
            unreadable recipe, or files that are not a run's.
    """
    if check_folder(folder, recipe):
        return
    learned, decoders, start = _made(folder)
    differing = _differing(folder, recipe) if (folder / RECIPE_FILE).exists() else []
    if decoders and not differing:
        return
    for path in learned:
        path.unlink()
    for path in decoders:
        remove_folder(path)
    if "preset" in differing:
        for path in start:
            remove_folder(path)
    record(folder, recipe)


def check_folder(folder: Path, recipe: Recipe) -> bool:
    """Return whether a folder has checkpoints of this recipe's run. Raise `UserError` as `claim`."""
    _check_no_preset(folder)
    if holds_this_run(folder, recipe):
        return True
    made = [path for paths in _made(folder) for path in paths]
    if made and not (folder / RECIPE_FILE).exists():
        names = ", ".join(path.name for path in made)
        raise UserError(f"{folder} has {names}, but no {RECIPE_FILE}: not a run's folder; choose another")
    return False


def _check_no_preset(folder: Path):
    if any((folder / mark).is_file() for mark in MARKS):
        raise UserError(f"{folder} holds a preset, which would hide the trained one: give another folder")


def _made(folder: Path) -> tuple[list[Path], list[Path], list[Path]]:
    """Return a run's vocabularies, decoders and copied preset, as far as there are any."""
    learned = sorted(found for pattern in VOCABULARIES for found in folder.glob(pattern))
    decoders, start = [folder / name for name in LANGUAGE_MODEL], [folder / START]
    return learned, [*filter(Path.exists, decoders)], [*filter(Path.exists, start)]


def holds_this_run(folder: Path, recipe: Recipe) -> bool:
    """Return whether a folder has checkpoints of this recipe's run. Raise `UserError` for another run's."""
    trained = [epoch for epoch, _, _ in saved_in(folder / "checkpoints")]
    if not trained:
        if (folder / "preset").exists():
            raise UserError(f"{folder} holds a trained preset without its checkpoints: give another folder")
        return False
    epochs = max(trained)
    if differing := _differing(folder, recipe):
        remedy = "give another folder, or the recipe that the run began with"
        if epochs and RATES.issuperset(differing):
            remedy = (
                f"to continue at another learning rate, fine-tune: end the run with epochs={epochs}, "
                f"then train a recipe with preset = {str(folder.absolute())!r} in another folder"
            )
        raise UserError(f"{folder} holds a run with another value of {', '.join(differing)}: {remedy}")
    if recipe.epochs < epochs:
        raise UserError(
            f"{folder} holds a run of {epochs} epochs, but epochs is {recipe.epochs}: "
            f"give another folder, or at least epochs={epochs}"
        )
    return True


def saved_in(folder: Path) -> list[tuple[int, int, Path]]:
    """Return each checkpoint's epochs, batches of the next epoch, and folder, oldest first."""
    found = [(CHECKPOINT.fullmatch(path.name), path) for path in folder.glob("epoch_*")]
    return sorted((int(name["epoch"]), int(name["batch"] or 0), path) for name, path in found if name)


def _differing(folder: Path, recipe: Recipe) -> list[str]:
    """Return the keys that affect training and differ from the folder's recipe."""
    path = folder / RECIPE_FILE
    recipes = make_recipe(read_object(path), str(path)), recipe
    # JSON turns tuples into lists.
    before, now = (json.loads(json.dumps(dataclasses.asdict(values))) for values in recipes)
    return [key for key in now if before[key] != now[key] and not _may_differ(key, before[key], now[key])]


def _may_differ(key: str, *values) -> bool:
    # A test set held out of the training text changes that text.
    return KEYS[key].metadata["may_differ"] and (
        key != "test" or all(isinstance(value, list) for value in values)
    )


def record(folder: Path, recipe: Recipe):
    """Write the recipe into the run's folder."""
    write_json(folder / RECIPE_FILE, dataclasses.asdict(recipe))


def recorded_recipe(folder: Path) -> Recipe | None:
    """Return the recipe of the run in a folder; `None` if there is no run."""
    path = folder / RECIPE_FILE
    return make_recipe(read_object(path), str(path)) if path.exists() else None


def recipe_of_text(folder: Path) -> Recipe | None:
    """Return the recipe that opens the text of the run in a folder; `None` if there is no run.

    A reverse model was trained on the text of its run, whose files are not in the order of its own recipe.
    """
    whole = recorded_recipe(folder.parent) if folder.name == REVERSE else None
    return whole or recorded_recipe(folder)


def begun_recipe(folder: Path) -> Recipe | None:
    """Return the recipe of the run in a folder; `None` if nothing is trained there yet."""
    _, decoders, _ = _made(folder)
    begun = decoders or any(saved_in(where / "checkpoints") for where in (folder, folder / REVERSE))
    return recorded_recipe(folder) if begun else None
