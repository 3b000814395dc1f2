"""A preset's metadata: its format, its files, and their SHA-256, checked before a file is used.

Also its search settings.
"""

import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from kzoo.decoding.search_settings import SearchSettings
from kzoo.errors import UserError, nearest
from kzoo.files import check_fetched, read_object, sha256, write_json

if TYPE_CHECKING:
    import h5py

FORMAT = 1
# A preset's files. The first two names are keras-hub's.
METADATA_FILE = "metadata.json"
CONFIG_FILE = "config.json"
TRANSLATOR_FILE = "translator.json"
SEARCH_FILE = "search.json"
CARD_FILE = "README.md"
SCORES_FILE = "scores.json"
# Arguments of backbones that may be changed after training.
OVERRIDES = ("dropout", "dtype", "max_length", "penalty_weight")
NOTES = (CARD_FILE, SCORES_FILE)  # for people; written after the preset


def seal(folder: str | os.PathLike):
    """Write the format and the files' SHA-256 into a preset's metadata.

    Left out are the card and the scores, because they may change later, and hidden files, such as Git's.

    Args:
        folder: the preset, with the metadata that keras-hub wrote.

    Raises:
        UserError: it has no metadata, or a file whose name some systems do not allow.
    """
    folder = Path(folder)
    metadata = read_object(folder / METADATA_FILE)
    names = sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    names = [
        name for name in names if not re.search(r"(^|/)\.", name) and name not in (METADATA_FILE, *NOTES)
    ]
    for name in names:
        check_name(name, f"preset {folder}")
    files = {name: sha256(folder / name) for name in names}
    write_json(folder / METADATA_FILE, {**metadata, "kzoo_format": FORMAT, "files": files})


class SealedFolder:
    """A preset's folder, whose metadata lists the SHA-256 of its files.

    Args:
        folder: the preset.
        source: handle from which it is being fetched; errors name it instead of the folder.

    Attributes:
        folder: the preset.
        files: the SHA-256 of each file by its name.

    Raises:
        UserError: no metadata, a newer format, no checksums, a file name outside the folder, or a card or
            scores that are a link out of it.
    """

    def __init__(self, folder: str | os.PathLike, source: str | None = None):
        self.folder, self._name = Path(folder), f"preset {source or folder}"
        self._remedy = "delete the folder and fetch or copy the preset again"
        if source:
            self._remedy = "fetch it again later, or contact its author"
        metadata = read_object(self._inside(METADATA_FILE))
        number = metadata.get("kzoo_format", FORMAT)
        if number != FORMAT:
            raise UserError(f"{self._name} has format {number!r}, but this kzoo reads {FORMAT}: update kzoo")
        self.files: dict[str, str] = metadata.get("files")
        if not self.files or not isinstance(self.files, dict):
            raise UserError(
                f"{self._name}: {METADATA_FILE} lists no checksums: save it again with a translator's "
                "save_to_preset, or add them with kzoo.hub.seal if it is your own"
            )
        for file in self.files:
            check_name(file, f"{self._name}: {METADATA_FILE}")
        for note in NOTES:  # without checksums; a server's page shows them
            if (self.folder / note).exists():
                self._inside(note)

    def require(self, *names: str):
        """Raise `UserError` for a file without a checksum."""
        for name in names:
            if name not in self.files:
                raise UserError(f"{self._name}: {METADATA_FILE} lists no {name}; {self._remedy}")

    def check(self, *names: str):
        """Compare files with their SHA-256; all files by default.

        Raises:
            UserError: a file has no checksum, is missing, altered, or a link out of the folder.
        """
        self.require(*names)
        for name in names or self.files:
            seen, expected = sha256(self._inside(name)), self.files[name]
            if seen != expected:
                check_fetched(self.folder / name)
                raise UserError(
                    f"{self._name}: {name} is altered or cut short (SHA-256 {seen:.12}… instead of "
                    f"{expected!s:.12}…); {self._remedy}"
                )

    def _inside(self, name: str) -> Path:
        """Return the path of a file. Raise `UserError` if it is missing or a link out of the folder."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise UserError(f"{self._name}: {name} is a link out of the folder; replace it with the file")
        if not path.is_file():
            raise UserError(f"{self._name}: {name} is missing; {self._remedy}")
        return path


def check_name(name: str, where: str):
    """Raise `UserError` for a file name that is not valid, or not inside the folder, on every system."""
    if {"", ".", ".."} & set(name.split("/")):
        raise UserError(f"{where} names the file {name!r:.80}, which is not inside the preset's folder")
    if re.search(r'[\\:*?"<>|]', name) or not name.isprintable():
        raise UserError(f"{where}: the file name {name!r:.80} is not valid on every system: rename the file")


def holds_values(array: "h5py.Dataset") -> bool:
    """Return whether an HDF5 array's values are in its own file; a kilobyte can declare gigabytes.

    An array of at most 1 MiB may be declared only.
    """
    declared_only = array.nbytes > max(2**20, 1000 * array.id.get_storage_size())
    return not (array.external or array.is_virtual or declared_only)


def check_overrides(preset: str | os.PathLike, config: dict, overrides: Iterable[str]):
    """Raise `UserError` for an argument of a trained backbone that may not be changed.

    Args:
        preset: the preset, named in errors.
        config: the backbone's arguments.
        overrides: the names to change.
    """
    fixed = ["max_length"] if config.get("position_encoding") == "learned" else []  # its table's size
    may_differ = [name for name in OVERRIDES if name in config and name not in fixed]
    for name in overrides:
        if name not in may_differ:
            raise UserError(
                f"preset {preset} has no argument {name!r} to change; {nearest(name, may_differ)}"
            )


def own_search(folder: Path) -> SearchSettings:
    """Return the search settings in a preset's folder, or the defaults if it has no settings file.

    Raises:
        UserError: the file cannot be read, or has an invalid setting.
    """
    path = folder / SEARCH_FILE
    return SearchSettings.from_entries(read_object(path) if path.exists() else {}, path)
