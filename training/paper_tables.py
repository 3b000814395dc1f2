"""What the papers' tables share: models trained and scored once, results as JSON, Markdown beside them."""

import json
import tomllib
from collections.abc import Callable
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Any, Literal

import typer

from kzoo.errors import UserError
from kzoo.files import whole_file, write_json
from kzoo.presets import load
from kzoo.training import Recipe, train
from kzoo.training.run_folder import keep_results

Size = Annotated[Literal["tiny", "base"], typer.Option()]
Runs = Annotated[Path, typer.Option(help="Folder of the runs.")]


def paper_numbers(script: str) -> dict:
    """Return the paper's numbers, `paper.toml` beside the script."""
    return tomllib.loads(Path(script).with_name("paper.toml").read_text("utf-8"))


def scored_once(recipe: Recipe, folder: Path, score: Callable[[Any, Path], None]) -> Any:
    """Train a recipe's model in a folder and score it, or read the scores of an earlier call.

    Args:
        recipe: the recipe.
        folder: the run's; a stopped run resumes.
        score: function of the trained translator and of the path of a JSON file, which it writes with
            `"scores"` and with the recipe as `"recipe"`.

    Returns:
        The scores as JSON has them.

    Raises:
        UserError: the folder's run cannot go on with this recipe.
    """
    path = folder / "scores.json"
    if not keep_results(path, recipe):
        train(recipe, folder)
        score(load(folder), path)
    return results_in(path)["scores"]


def recipe_search(recipe: Recipe) -> dict:
    """Return the arguments of `evaluate` with which a recipe's model is searched."""
    return {name: getattr(recipe, name) for name in ("beam_size", "length_penalty", "truncate")}


def results_in(path: Path) -> dict:
    """Return a JSON file's results, including those of other calls; none if it does not exist."""
    return json.loads(path.read_text("utf-8")) if path.exists() else {}


def add_results(path: Path, **results):
    """Write results into a JSON file by name; others in it are kept."""
    write_json(path, {**results_in(path), **results})


def show_markdown(text: str, results: Path):
    """Print Markdown, and write it beside the JSON file of the same results, complete or not at all.

    Args:
        text: without a last line feed.
        results: the JSON file; the Markdown's has its name, but ends in `.md`.

    Raises:
        UserError: it cannot be written, for example because the disk is full.
    """
    print(text)
    with whole_file(results.with_suffix(".md")) as file:
        file.write_text(text + "\n", encoding="utf-8")


def spread(values: list[float]) -> str:
    """Return mean ± sample standard deviation; the mean alone of a single value."""
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


def numbers(text: str) -> list[int]:
    """Return the numbers of an option such as `--seeds 1,2,3`."""
    try:
        found = [int(number) for number in text.split(",")]
    except ValueError:
        raise UserError(f"not numbers separated by commas, such as 1,2,3: {text!r}") from None
    if len(set(found)) < len(found):
        raise UserError(f"a number is repeated: {text!r}")
    return found
