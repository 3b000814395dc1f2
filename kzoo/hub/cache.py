"""Presets from other hosts: fetched once by their handle, verified, cached, and used offline from then on.

`kzoo.hub.location` calls it for `hf://` and `kaggle://`. The packages that access the two hosts are
those that keras-hub uses; they are imported when something is fetched.
"""

import importlib
import os
import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import quote

from kzoo.errors import UserError
from kzoo.files import cache_folder, to_disk, unfinished_folder
from kzoo.hub.integrity import METADATA_FILE, check_files, read_listing

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
HUGGING_FACE = re.compile(rf"hf://({NAME}/{NAME})(?:@({NAME}(?:/{NAME})*))?")
KAGGLE = re.compile(rf"kaggle://({NAME}/{NAME}/keras/{NAME})(?:/([0-9]+))?")
FORMS = "hf://USER/REPOSITORY[@REVISION], kaggle://USER/MODEL/keras/VARIATION[/VERSION]"


@dataclass(frozen=True)
class Source:
    """Where a preset is fetched from.

    Args:
        handle: as the user wrote it.
        place: its folder, below the cache's.
        package: Python package that fetches from there.
        fetch: function of that package and a file's name; returns the path of the file it fetched.
    """

    handle: str
    place: str
    package: str
    fetch: Callable[[ModuleType, str], str]


def fetched(handle: str) -> Path:
    """Return the folder of the cache that holds a handle's preset; fetch it if it is not there yet.

    It appears complete or not at all, even when several processes fetch it at once. The named revision or
    version is kept; without one, the newest at the time of fetching.

    Args:
        handle: in one of the two `FORMS`.

    Raises:
        UserError: no such handle, its package is not installed, no network, not a preset of kzoo's, a file
            that is missing or altered.
    """
    source = parse_handle(handle)
    folder = cache_folder() / "presets" / source.place
    if folder.is_dir():
        return folder
    try:
        package = importlib.import_module(source.package)
    except ImportError as error:
        raise UserError(f"{handle} needs {source.package}: pip install {source.package} ({error})") from None
    try:
        with unfinished_folder(folder) as unfinished:
            _fill(unfinished, source, package)
            _move(unfinished, folder)
    except OSError as error:
        reason = error.strerror or error
        raise UserError(
            f"{handle} cannot be kept in {folder} ({reason}); KZOO_CACHE can name another folder"
        ) from None
    return folder


def parse_handle(handle: str) -> Source:
    """Return where a handle's preset is fetched from.

    Raises:
        UserError: it has none of the `FORMS`.
    """
    if match := HUGGING_FACE.fullmatch(handle):
        repository, revision = match.groups()
        return Source(
            handle,
            f"hf/{repository}/{quote(revision or 'main', safe='')}",
            "huggingface_hub",
            lambda package, name: package.hf_hub_download(
                repo_id=repository, filename=name, revision=revision
            ),
        )
    if match := KAGGLE.fullmatch(handle):
        model, version = match.groups()
        whole = model if version is None else f"{model}/{version}"
        return Source(
            handle,
            f"kaggle/{model}/{version or 'latest'}",
            "kagglehub",
            lambda package, name: package.model_download(whole, name),
        )
    raise UserError(f"unknown handle {handle!r}; the forms are {FORMS}")


def _fill(folder: Path, source: Source, package: ModuleType):
    """Fetch a preset's metadata and the files that it lists, and check them."""
    _fetch_file(folder, METADATA_FILE, source, package)
    listing = read_listing(folder, source.handle)
    for name in listing:
        _fetch_file(folder, name, source, package)
    check_files(folder, listing, source=source.handle)


def _fetch_file(folder: Path, name: str, source: Source, package: ModuleType):
    try:
        came = source.fetch(package, name)
    except Exception as error:  # the packages have no common error class, and change theirs
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        reason = reason if len(reason) <= 160 else f"{reason:.160} …"
        raise UserError(
            f"{source.handle}: {name} cannot be fetched ({reason}), and the preset is not in the cache "
            f"{cache_folder() / 'presets'}; check the handle and the network"
        ) from None
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(came, path)
    to_disk(path)  # before the folder gets its name, in case power fails


def _move(unfinished: Path, folder: Path):
    try:
        os.rename(unfinished, folder)
    except OSError:
        if not folder.is_dir():  # else another process was first, and fetched the same
            raise
