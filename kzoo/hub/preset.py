"""A trained preset as files: where it is, what it says about itself, and the SHA-256 of each file."""

import hashlib
import os
import re
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from kzoo.decoding.search_settings import SearchSettings
from kzoo.errors import UserError, nearest
from kzoo.files import check_fetched, json_object, read_object, sha256, write_json

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
NOTES = (CARD_FILE, SCORES_FILE)  # for people; written after the preset
TOKENIZER_FILE = re.compile(r"[\w-]+\.json", re.ASCII)
CONVERTED = ("marian", "m2m_100")  # kinds of models in Hugging Face's form that kzoo can read
# Arguments of backbones that may be changed after training.
OVERRIDES = ("dropout", "dtype", "max_length", "penalty_weight")


class unlocked(cached_property):
    """`functools.cached_property` without the lock of Python 3.11's, which all presets share.

    A preset's model may be converted in a thread, which uses another preset meanwhile.
    """

    def __get__(self, preset, owner=None):
        if preset is None:
            return self
        found = preset.__dict__[self.attrname] = self.func(preset)
        return found


@dataclass(frozen=True)
class Preset:
    """A trained preset. Each of its files is read once, when it is first needed.

    What is read is compared with the SHA-256 in the preset's metadata; its card and its scores, which may
    change later, have none. All that uses one `Preset` sees the same small files, whatever happens to its
    folder meanwhile. `kzoo.presets.locate` finds one.

    Args:
        place: its folder, or a repository with a model of another form.
        given: how the user named it: a name on the shelf, a folder, or a handle; by default the folder.
        conversion: function that returns the folder of the preset made of such a model.
        remedy: what errors advise for a damaged file.

    Raises:
        UserError: by any of its properties: a file is missing, altered, or a link out of the folder; its
            content is not valid, or of a newer format.
    """

    place: Path
    given: str = ""
    conversion: Callable[[], Path] | None = None
    remedy: str = ""
    _read: dict[str, bytes] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __str__(self) -> str:
        return f"preset {self.given or self.place}"

    @unlocked
    def folder(self) -> Path:
        """The absolute folder of its files. A model of another form is converted for this, once."""
        return (self.conversion() if self.conversion else self.place).absolute()

    @property
    def name(self) -> str:
        """The last part of a handle, the name of the preset's run, or the name of its (versions') folder."""
        if "://" in self.given:
            parts = self.given.partition("@")[0].rstrip("/").split("/")
            return parts[-2] if self.given.startswith("kaggle:") and parts[-1].isdecimal() else parts[-1]
        place = self.place.resolve()
        inside = place.name == "preset" or self.version
        return place.parent.name if inside else place.name

    @property
    def version(self) -> int | None:
        """The number that names its folder, if it was found in the folder of its versions; else `None`."""
        place, given = self.place.resolve(), Path(self.given or self.place).resolve()
        return int(place.name) if place.parent == given and place.name.isdecimal() else None

    @unlocked
    def metadata(self) -> dict:
        """What keras-hub and kzoo wrote about the preset's files, such as `parameter_count`."""
        unsealed = not (self.folder / METADATA_FILE).is_file() and (self.folder / CONFIG_FILE).is_file()
        kind = self._parsed(CONFIG_FILE).get("model_type") if unsealed else None
        if kind and kind not in CONVERTED:
            raise UserError(
                f"{self} is a Hugging Face model of type {kind!r:.40}; kzoo reads marian (OPUS-MT) and "
                "m2m_100 (M2M-100, NLLB-200, SMaLL-100)"
            )
        metadata = self._parsed(METADATA_FILE)
        listed = metadata.get("files")
        if not listed or not isinstance(listed, dict):
            raise UserError(
                f"{self}: {METADATA_FILE} lists no checksums: save it again with a translator's "
                "save_to_preset, or add them with kzoo.hub.seal if it is your own"
            )
        if (number := metadata.get("kzoo_format")) != FORMAT:
            raise UserError(f"{self} has format {number!r}, but this kzoo reads {FORMAT}: update kzoo")
        for name in listed:
            check_name(name, f"{self}: {METADATA_FILE}")
        return metadata

    @property
    def files(self) -> dict[str, str]:
        """The SHA-256 of each file by its name."""
        return self.metadata["files"]

    @property
    def low_scores(self) -> dict[str, float]:
        """By `direction_key`, the score below which a translation is unusual."""
        low = self.metadata.get("low_scores") or {}
        if not (isinstance(low, dict) and all(isinstance(score, int | float) for score in low.values())):
            raise UserError(
                f"{self.where(METADATA_FILE)}: low_scores is {low!r:.80}, not a number for each direction"
            )
        return low

    @unlocked
    def backbone(self) -> dict:
        """The backbone as Keras serializes it: its `class_name`, its arguments `config`, and more."""
        backbone = self.object(CONFIG_FILE)
        if not (isinstance(backbone.get("class_name"), str) and isinstance(backbone.get("config"), dict)):
            raise UserError(f"{self.where(CONFIG_FILE)} lacks a class_name or a config")
        return backbone

    @unlocked
    def settings(self) -> dict:
        """The translator's `class`, its `tokenizers`' files, and its other arguments, such as languages."""
        settings, where = self.object(TRANSLATOR_FILE), self.where(TRANSLATOR_FILE)
        tokenizers = settings.get("tokenizers")
        if "class" not in settings or not isinstance(tokenizers, list):
            raise UserError(f"{where} lacks class or tokenizers: it is not of a kzoo preset")
        for name in tokenizers:
            if not isinstance(name, str) or not TOKENIZER_FILE.fullmatch(name):
                raise UserError(
                    f"{where} names the tokenizer {name!r:.80}, not a file like joint_tokenizer.json"
                )
        languages = settings.get("languages", [])
        if not (isinstance(languages, list) and all(isinstance(code, str) for code in languages)):
            raise UserError(f"{where}: languages is {languages!r:.80}, not a list of codes")
        for name in ("source_language", "target_language"):
            if not isinstance(settings.get(name), str | None):
                raise UserError(f"{where}: {name} is {settings[name]!r:.80}, not a code")
        return settings

    @unlocked
    def search(self) -> SearchSettings:
        """The search settings."""
        return SearchSettings.from_entries(self.object(SEARCH_FILE), self.where(SEARCH_FILE))

    @unlocked
    def scores(self) -> dict:
        """The content of `scores.json`; without the file, only "scores", an empty list.

        The file may be edited by hand: rows without BLEU, or without what was scored, are left out, as are a
        corpus and a licence that are not text.
        """
        content = self._parsed(SCORES_FILE) if (self.folder / SCORES_FILE).is_file() else {}
        texts = ("corpus", "licence")
        content = {key: value for key, value in content.items() if key not in texts or isinstance(value, str)}
        rows = content.get("scores")
        rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
        scored = (row for row in rows if row.keys() & {"split", "source"})
        return {**content, "scores": [row for row in scored if isinstance(row.get("bleu"), int | float)]}

    @unlocked
    def card(self) -> str | None:
        """The text of its model card, in Markdown."""
        if not (self.folder / CARD_FILE).is_file():
            return None
        return self._bytes(CARD_FILE).decode("utf-8", errors="replace")

    @property
    def size(self) -> str:
        """Its number of parameters, and its size on the disk."""
        parameters = self.metadata.get("parameter_count")
        known = parameters and isinstance(parameters, int | float)
        counted = f"{parameters / 1e6:.1f} M parameters, " if known else ""
        stored = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file())
        return f"{counted}{stored / 1e6:.1f} MB"

    @property
    def is_converted(self) -> bool:
        """Whether its place has a model in another form, which kzoo converts to a preset."""
        return bool(self.conversion) or self.model_type in CONVERTED

    @property
    def model_type(self) -> str | None:
        """What its configuration calls the kind of model, if that is in Hugging Face's form."""
        try:
            return self._parsed(CONFIG_FILE).get("model_type")
        except UserError:
            return None

    def where(self, name: str) -> str:
        """Return what errors call a file."""
        return f"{self}: {name}"

    def object(self, name: str) -> dict:
        """Return the JSON object in a file, compared with its SHA-256."""
        self.check(name)
        return self._parsed(name)

    def read(self, name: str) -> bytes:
        """Return the bytes of a small file, compared with its SHA-256."""
        self.require(name)
        self._bytes(name)  # so that the comparison does not read the file, too
        self.check(name)
        return self._bytes(name)

    def require(self, *names: str):
        """Raise `UserError` for a file without a checksum."""
        for name in names:
            if name not in self.files:
                raise UserError(f"{self}: {METADATA_FILE} lists no {name}; {self._advice}")

    def check(self, *names: str):
        """Compare files with their SHA-256; all files by default. JSON files are then not read again.

        Raises:
            UserError: a file has no checksum, is missing, altered, or a link out of the folder.
        """
        self.require(*names)
        names = names or [*self.files]
        with ThreadPoolExecutor(os.cpu_count()) as threads:  # hashing releases Python's lock
            for name, seen in zip(names, threads.map(self._digest, names), strict=True):
                if seen == self.files[name]:
                    continue
                check_fetched(self.folder / name)
                raise UserError(
                    f"{self}: {name} is altered or cut short (SHA-256 {seen:.12}… instead of "
                    f"{self.files[name]!s:.12}…); {self._advice}"
                )

    def check_overrides(self, overrides: Iterable[str]):
        """Raise `UserError` for an argument of the backbone that may not be changed after training."""
        config = self.backbone["config"]
        fixed = ["max_length"] if config.get("position_encoding") == "learned" else []  # its table's size
        may_differ = [name for name in OVERRIDES if name in config and name not in fixed]
        for name in overrides:
            if name not in may_differ:
                raise UserError(f"{self} has no argument {name!r} to change; {nearest(name, may_differ)}")

    @property
    def _advice(self) -> str:
        return self.remedy or f"delete {self.folder} and fetch or copy the preset again"

    def _digest(self, name: str) -> str:
        if name in self._read or name.endswith(".json"):
            return hashlib.sha256(self._bytes(name)).hexdigest()
        return sha256(self._inside(name))

    def _parsed(self, name: str) -> dict:
        content = self._bytes(name)
        try:
            return json_object(content, self.where(name))
        except UserError:
            check_fetched(self.folder / name)
            raise

    def _bytes(self, name: str) -> bytes:
        if name not in self._read:
            self._read[name] = self._inside(name).read_bytes()
        return self._read[name]

    def _inside(self, name: str) -> Path:
        """Return the path of a file. Raise `UserError` if it is missing or a link out of the folder."""
        path = (self.folder / name).resolve()
        if not path.is_relative_to(self.folder.resolve()):
            raise UserError(f"{self}: {name} is a link out of the folder; replace it with the file")
        if not path.is_file():
            raise UserError(f"{self}: {name} is missing; {self._advice}")
        return path


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
    listed = {name: sha256(folder / name) for name in names}
    write_json(folder / METADATA_FILE, {**metadata, "kzoo_format": FORMAT, "files": listed})


def check_name(name: str, where: str):
    """Raise `UserError` for a file name that is not valid, or not inside the folder, on every system."""
    if {"", ".", ".."} & set(name.split("/")):
        raise UserError(f"{where} names the file {name!r:.80}, which is not inside the preset's folder")
    if re.search(r'[\\:*?"<>|]', name) or not name.isprintable():
        raise UserError(f"{where}: the file name {name!r:.80} is not valid on every system: rename the file")


def direction_key(source: str | None, target: str | None) -> str:
    """Return the key of a direction in a preset's metadata, such as `"en-de"`."""
    return f"{source}-{target}"


def tokenizer_asset(tokenizer: str, name: str) -> str:
    """Return the name of a tokenizer's file, such as its vocabulary, in a preset: keras-hub's."""
    return f"assets/{tokenizer.removesuffix('.json')}/{name}"


def write_low_scores(folder: Path, scores: dict[str, float]):
    """Write the score below which a translation is unusual to a preset's metadata, by `direction_key`.

    This score is the 5th percentile of the validation set's scores.
    """
    metadata = read_object(folder / METADATA_FILE)
    write_json(folder / METADATA_FILE, {**metadata, "low_scores": scores})


def holds_values(array: "h5py.Dataset") -> bool:
    """Return whether an HDF5 array's values are in its own file; a kilobyte can declare gigabytes.

    An array of at most 1 MiB may be declared only.
    """
    declared_only = array.nbytes > max(2**20, 1000 * array.id.get_storage_size())
    return not (array.external or array.is_virtual or declared_only)
