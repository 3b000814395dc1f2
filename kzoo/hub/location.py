"""Where a trained preset is: in a folder, on the zoo's shelf, or in the cache of fetched presets."""

import importlib.util
import json
import os
import re
from pathlib import Path

from kzoo.errors import UserError, nearest


def _shelf() -> Path:
    """Return the folder of the zoo's trained presets: a clone's, or that of the wheel kzoo-shelf."""
    clone = Path(__file__).resolve().parents[2] / "presets"
    installed = importlib.util.find_spec("kzoo_shelf")
    if (clone / "pyproject.toml").is_file() or installed is None:
        return clone
    return Path(installed.submodule_search_locations[0])


SHELF = _shelf()
# One of them may be missing, which is reported when the preset is read.
MARKS = ("config.json", "metadata.json")


def locate(preset: str | os.PathLike) -> Path:
    """Return the folder of a trained preset; one that a handle names is fetched if it is not cached yet.

    Args:
        preset: a folder that `save_to_preset` wrote, or that `kzoo train` did; a name on the shelf; or
            a handle, such as `"hf://user/repository"` or `"kaggle://user/model/keras/variation"`.

    Raises:
        UserError: no preset has that name, or it cannot be fetched.
    """
    name = os.fspath(preset)
    if "://" in name:
        from kzoo.hub.cache import fetched

        return fetched(name)
    try:
        for folder in (Path(name), Path(name) / "preset", SHELF / name):
            if any((folder / mark).is_file() for mark in MARKS):
                return folder
    except OSError as error:  # such as a name that is too long
        raise UserError(f"preset {name!r:.80} cannot be read: {error.strerror}") from None
    raise UserError(_why_not(name))


def is_marian(folder: Path) -> bool:
    """Return whether a folder is a repository with a Marian model, which can be converted to a preset."""
    try:
        found = json.loads((folder / "config.json").read_text("utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(found, dict) and found.get("model_type") == "marian"


def _why_not(name: str) -> str:
    if (Path(name) / "recipe.json").is_file():
        return f"{name} is a run without a preset yet: `kzoo train` with its recipe goes on"
    if Path(name).is_dir():
        return f"the folder {name} has no preset"
    if not SHELF.is_dir():
        return (
            f"no trained preset {name!r}: pip install 'kzoo[shelf]' brings the zoo's; "
            "a folder or a handle can be given"
        )
    if re.match(r"(hf|kaggle):", name):
        return f"no trained preset {name!r}: a handle is hf://user/repository or kaggle://user/model/keras/variation"
    if "/" in name:
        return f"no folder {name}: give a trained preset, or the folder of a run"
    return f"no trained preset {name!r}; {nearest(name, shelved())}"


def shelved() -> list[str]:
    """Return the names of the presets on the shelf, sorted."""
    if not SHELF.is_dir():  # kzoo was installed without it
        return []
    return sorted(folder.name for folder in SHELF.iterdir() if (folder / "config.json").is_file())
