"""Shared by the papers' tables: train and score a model once, write results as JSON and Markdown."""

import math
import os
import re
import tomllib
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any, Literal

import typer

from kzoo.errors import UserError
from kzoo.files import atomic_write, read_object, write_json
from kzoo.presets import load
from kzoo.training import Recipe, read_recipe, train
from kzoo.training.recipe_checks import make_recipe
from kzoo.training.recipe_files import recipe_file
from kzoo.training.run_folder import holds_this_run, saved_in

SCORES = "scores.json"  # in a run's folder
Size = Annotated[Literal["tiny", "base"], typer.Option()]
Runs = Annotated[Path, typer.Option(help="Folder of the runs.")]


def paper_numbers(script: str) -> dict:
    """Return the paper's numbers, `paper.toml` beside the script."""
    return tomllib.loads(Path(script).with_name("paper.toml").read_text("utf-8"))


def data_folder(name: str) -> Path:
    """Return the folder in KZOO_DATA with an experiment's data.

    Raises:
        UserError: KZOO_DATA is not set, or has no such folder.
    """
    given = os.environ.get("KZOO_DATA", "")
    folder = Path(os.path.expanduser(given)) / name
    if not given or not folder.is_dir():
        raise UserError(f"KZOO_DATA is {given!r}: set KZOO_DATA to a folder that holds {name}/")
    return folder


def table_recipe(name: str, overrides: list[str], fixed: tuple[str, ...]) -> Recipe:
    """Return one of the zoo's recipes with overrides.

    Raises:
        UserError: as `read_recipe`; or an override changes one of the keys `fixed`, such as `"model.bridge"`.
    """
    recipe, plain = read_recipe(name, overrides), read_recipe(name)
    for key in fixed:
        first, _, inner = key.partition(".")
        values = [getattr(one, first) for one in (recipe, plain)]
        if inner:
            values = [value.get(inner) for value in values]
        if values[0] != values[1]:
            raise UserError(f"{key} is set by this script and cannot be overridden; see --help")
    return recipe


def print_estimate(name: str, runs: Sequence[tuple[Recipe, Path]], more: float = 0.0):
    """Print how many runs are left to train and about how long that takes, by a recipe's own time.

    Args:
        name: the zoo's recipe that the runs have, with changes. Its first lines may say how long it takes.
        runs: their recipes and folders. A run takes its share of the recipe's steps or batches, less those
            that its checkpoints have.
        more: minutes of other work.
    """
    minutes, where = recipe_time(name)
    plain, left = read_recipe(name), {}
    for recipe, folder in runs:
        if not has_results(folder / SCORES, recipe):
            done = max((epochs for epochs, *_ in saved_in(folder / "checkpoints")), default=0)
            left[folder] = work_of(recipe) / work_of(plain) * max(0.0, 1 - done / recipe.epochs)
    trained = f"{len(left)} of {len({folder for _, folder in runs})} runs to train"
    if left and minutes is None:
        print(f"{trained}: their time is not measured, and needs a GPU")
        return
    total = (minutes or 0.0) * sum(left.values()) + more
    about = f"{total / 60:.1f} hours" if total > 90 else f"{math.ceil(total)} minutes"
    print(f"{trained}: about {about} in all {where}" if total else f"{trained}", flush=True)


def recipe_time(name: str) -> tuple[float | None, str]:
    """Return the minutes that a recipe's first lines state and the machine; `None` if they state no time."""
    text = recipe_file(name).read_text(encoding="utf-8")
    found = re.search(
        r"^# Time: (?:about )?(half an|a|[\d.]+) (minute|hour)s?(?: of training)? (on [^.;]*)", text, re.M
    )
    if not found:
        return None, ""
    count, unit, where = found.groups()
    units = {"half an": 0.5, "a": 1.0}.get(count) or float(count)
    return units * (60 if unit == "hour" else 1), where


def work_of(recipe: Recipe) -> int:
    """Return what a run's time is in proportion to, among runs of one recipe with changes."""
    return recipe.steps or recipe.epochs * (recipe.batches_per_epoch or 1)


def scored_once(recipe: Recipe, folder: Path, score: Callable[[Any, Path], None]) -> Any:
    """Train a recipe's model in a folder and score it, or read the scores of an earlier call.

    Args:
        recipe: the recipe.
        folder: the run's folder; a stopped run resumes.
        score: function that takes the trained translator and the path of a JSON file, and writes the
            scores there as `"scores"` and the recipe as `"recipe"`.

    Returns:
        The scores from the JSON file.

    Raises:
        UserError: the folder's run cannot resume with this recipe.
    """
    path = folder / SCORES
    if not keep_results(path, recipe):
        train(recipe, folder)
        score(load(folder), path)
    return results_in(path)["scores"]


def keep_results(path: Path, recipe: Recipe) -> bool:
    """Return whether a file has this recipe's results. If not, and the run can resume, remove the file.

    Args:
        path: JSON file in the run's folder, with the recipe of its results as `"recipe"`; it may be missing.
        recipe: the recipe.

    Raises:
        UserError: the file's recipe is not valid, or the run cannot resume with this recipe; the file stays.
    """
    kept = has_results(path, recipe)
    if not kept:
        holds_this_run(path.parent, recipe)
        path.unlink(missing_ok=True)
    return kept


def has_results(path: Path, recipe: Recipe) -> bool:
    """Return whether a file has this recipe's results. Raise `UserError` if its recipe is not valid."""
    return path.exists() and make_recipe(results_in(path).get("recipe", {}), str(path)) == recipe


def results_in(path: Path) -> dict:
    """Return the results in a JSON file; none if it does not exist."""
    return read_object(path) if path.exists() else {}


def add_results(path: Path, **results):
    """Add results to a JSON file by name, and keep its other results."""
    write_json(path, {**results_in(path), **results})


def show_markdown(text: str, results: Path):
    """Print Markdown, and write it atomically next to the JSON file of the same results.

    Args:
        text: without a trailing line feed.
        results: the JSON file; the Markdown file has the same name with `.md`.

    Raises:
        UserError: it cannot be written, for example because the disk is full.
    """
    print(text)
    with atomic_write(results.with_suffix(".md")) as file:
        file.write_text(text + "\n", encoding="utf-8")


def spread(values: list[float], digits: int = 1) -> str:
    """Return mean ± sample standard deviation; for a single value, the mean alone."""
    deviation = f" ± {stdev(values):.{digits}f}" if len(values) > 1 else ""
    return f"{mean(values):.{digits}f}{deviation}"


def numbers(text: str) -> list[int]:
    """Return the numbers of an option such as `--seeds 1,2,3`."""
    try:
        found = [int(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"not numbers separated by commas, such as 1,2,3: {text!r}") from None
    if len(set(found)) < len(found):
        raise UserError(f"a number is repeated: {text!r}")
    return found
