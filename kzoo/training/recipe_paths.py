"""Where a recipe is, by its path or its name, and the paths in it, which are relative to its folder."""

import os
from pathlib import Path

from kzoo.errors import UserError, nearest

# In a clone; in an installation.
FOLDERS = (Path(__file__).parents[2] / "training", Path(__file__).parents[1] / "recipes")


def recipe_file(recipe: str | Path) -> Path:
    """Return the path of a recipe, which may be given by the name of one of the zoo's: "pope_multi30k".

    Raises:
        UserError: no recipe has that name.
    """
    path = Path(recipe)
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    found = {
        path.stem: path for folder in FOLDERS for path in folder.glob("*/*.toml") if path.stem != "paper"
    }
    if path.name not in found:
        raise UserError(f"no recipe {path.name}; {nearest(path.name, found)}; your own ends with .toml")
    return found[path.name]


def from_folder(folder: Path, key: str, value):
    """Return the value of a recipe's key, with the paths in it from `folder` on.

    A trained preset is a path if it has a slash or is a folder there; other presets are names or handles.
    """
    if key in ("train", "val", "test") and isinstance(value, list | tuple):
        return [_path(folder, item) for item in value]
    if key in ("shards", "images") or (key == "preset" and _is_folder(folder, value)):
        return _path(folder, value)
    return value


def _path(folder: Path, value):
    return os.path.normpath(folder / Path(value).expanduser()) if value and isinstance(value, str) else value


def _is_folder(folder: Path, preset) -> bool:
    return isinstance(preset, str) and "://" not in preset and ("/" in preset or (folder / preset).is_dir())
