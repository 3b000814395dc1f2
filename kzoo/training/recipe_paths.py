"""Paths in a recipe, which are relative to its folder."""

import os
from pathlib import Path


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
