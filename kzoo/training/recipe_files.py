"""The values of a recipe: read from its file, from the command line, or chosen by the user's own text."""

import os
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from kzoo.errors import UserError, nearest
from kzoo.files import check_file_name
from kzoo.training.choice import COOLDOWN, DROPOUT, Choice, choose, languages_of, text_of
from kzoo.training.recipe import KEYS, Recipe
from kzoo.training.recipe_checks import checked, make_recipe

# The zoo's own recipes: in a clone; in an installation.
FOLDERS = (Path(__file__).parents[2] / "training", Path(__file__).parents[1] / "recipes")


def read_recipe(path: str | Path, overrides: list[str] = ()) -> Recipe:
    """Read a recipe. For the user's own text, what it leaves out is chosen by the text (`choose`).

    Paths in the file are relative to its folder. Paths in overrides are relative to the current folder.

    Args:
        path: TOML file with the keys of `Recipe`, or the name of one of the zoo's recipes.
        overrides: each `"KEY=VALUE"`, with VALUE in TOML (`epochs=3`, `model.num_layers=2`). Strings need no
            quotes.

    Raises:
        UserError: no such file or name, invalid TOML, an unknown or missing key, a value of the wrong type,
            or a value that would change nothing.

    Example:

    >>> read_recipe("pope_multi30k", ["epochs=3"]).epochs
    3
    """
    values, recipe = read_values(path, overrides)
    return completed(values, choose(values, text_of(recipe)), str(path))


def completed(given: dict[str, Any], chosen: Mapping[str, Choice], where: str) -> Recipe:
    """Return the recipe of the given and the chosen values, checked. Errors name it as `where`.

    With minutes, a recipe without a cooldown gets the one that is chosen for the user's own text.
    """
    values = {key: choice.value for key, choice in chosen.items()} | given
    if DROPOUT in values:
        values["model"] = {"dropout": values.pop(DROPOUT)} | given.get("model", {})
    return checked({"cooldown": COOLDOWN} | values if values.get("minutes") else values, where)


def text_values(
    files: Sequence[str], source: str | None, target: str | None, overrides: Sequence[str] = ()
) -> tuple[dict[str, Any], Recipe]:
    """Return the values of a recipe for the user's own text files, or tables; and the recipe of these alone.

    Args:
        files: as a recipe's `train`.
        source, target: languages, both or none; `None`: those that the files' endings name.
        overrides: as in `read_recipe`.

    Raises:
        UserError: the files do not name the languages, one language is given alone, or an override is not
            `KEY=VALUE`.
    """
    if bool(source) != bool(target):
        raise UserError(f"{source or target!r} is one language: give both --from and --to, or neither")
    languages, values = [source, target] if source and target else languages_of(files), {"train": list(files)}
    if len(languages) > 2:
        values["languages"] = languages
    else:
        values |= {"source": languages[0], "target": languages[-1]}
    for override in overrides:
        _override(values, override)
    return values, _incomplete(values, "your own text")


def read_values(path: str | Path, overrides: Sequence[str] = ()) -> tuple[dict[str, Any], Recipe]:
    """Return the values that a recipe gives, and the recipe of these alone.

    Arguments and errors are those of `read_recipe`.
    """
    check_file_name(path)
    path = recipe_file(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"recipe {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"recipe {path} is not TOML: {error}") from None
    values = {name: _from_folder(path.parent, name, value) for name, value in values.items()}
    for override in overrides:
        _override(values, override)
    return values, _incomplete(values, str(path))


def _incomplete(values: Mapping[str, Any], where: str) -> Recipe:
    """Return the recipe of the given values, before others are chosen; their types and bounds are checked."""
    later = {"preset": "pope_tiny", "corpus": "files"}
    if values.get("minutes"):
        later["cooldown"] = COOLDOWN
    return make_recipe(later | values, where)


def recipe_file(recipe: str | Path) -> Path:
    """Return the path of a recipe: a file, or one of the zoo's recipes by its name, such as "pope_multi30k".

    Raises:
        UserError: no recipe has that name.
    """
    path = Path(recipe)
    if path.suffix or len(path.parts) != 1 or path.is_file():  # a run's folder may have a recipe's name
        return path
    found = {
        path.stem: path for folder in FOLDERS for path in folder.glob("*/*.toml") if path.stem != "paper"
    }
    if path.name not in found:
        raise UserError(f"no recipe {path.name}; {nearest(path.name, found)}; your own ends with .toml")
    return found[path.name]


def _from_folder(folder: Path, name: str, value):
    """Return a key's value, with its paths resolved from `folder`.

    A preset with a slash is a path, unless it is a handle.
    """
    if isinstance(value, list):
        return [_from_folder(folder, name, item) for item in value]
    if name == "model" and isinstance(value, dict) and isinstance(value.get("font"), str):
        return {**value, "font": os.path.normpath(folder / os.path.expanduser(value["font"]))}
    if not (isinstance(value, str) and value and name in KEYS):
        return value
    is_path = KEYS[name].metadata["path"]
    if name == "preset":
        is_path = bool(os.path.dirname(value)) and "://" not in value
    if not is_path:
        return value
    path = os.path.normpath(folder / os.path.expanduser(value))
    # A single name would be a builder's.
    return os.path.join(".", path) if name == "preset" and not os.path.dirname(path) else path


def _override(values: dict, override: str):
    """Set the key of `KEY=VALUE` to its value."""
    name, separator, text = override.partition("=")
    if not separator:
        raise UserError(f"{override!r} is not KEY=VALUE, as in epochs=3")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *tables, last = name.strip().split(".")
    if not tables and last in KEYS and KEYS[last].type is str and not isinstance(value, str):
        value = text.strip()  # the language nan, the folder 2024
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise UserError(f"{override!r}: {table} is a value, not a table")
    values[last] = value
