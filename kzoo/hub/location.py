"""Finding trained presets: in a folder, on the zoo's shelf, on Hugging Face or on Kaggle."""

import contextlib
import glob
import importlib.util
import os
import re
import shutil
import zipfile
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import quote

from kzoo.errors import UserError, first_line, nearest
from kzoo.files import atomic_folder, cache_folder, read_object
from kzoo.hub.preset import CONFIG_FILE, METADATA_FILE, NOTES, Preset

NAME = r"[A-Za-z0-9_][A-Za-z0-9_.-]*"
HUGGING_FACE = re.compile(rf"hf://({NAME}/{NAME})(?:@({NAME}(?:/{NAME})*))?")
KAGGLE = re.compile(rf"kaggle://({NAME}/{NAME}/keras/{NAME})(?:/([0-9]+))?")
FORMS = "hf://USER/REPOSITORY[@REVISION], kaggle://USER/MODEL/keras/VARIATION[/VERSION]"
Fetch = Callable[[Sequence[str], Path], object]  # fetches the named files into a folder

# The folder of the zoo's trained presets: in a clone, or else in the wheel kzoo-shelf.
SHELF = Path(__file__).resolve().parents[2] / "presets"
if not (SHELF / "pyproject.toml").is_file() and (_wheel := importlib.util.find_spec("kzoo_shelf")):
    SHELF = Path(_wheel.submodule_search_locations[0])
BUILDERS_STUB = Path(__file__).resolve().parents[1] / "presets" / "__init__.pyi"
# The module of each builder of untrained models.
BUILDERS = {
    name: module
    for module, name in re.findall(r"from \.(\w+) import (\w+)", BUILDERS_STUB.read_text(encoding="utf-8"))
    if module not in ("builders", "shelf", "trimming")
}
# The presets in the wheel kzoo-shelf, so that an error can suggest installing it.
INSTALLABLE = (
    "attention_bridge_m2m_tiny_multi30k",
    "glyph_tiny_tatoeba_zh_en",
    "image_text_tiny_scenes_en_de",
    "pope_small_multi30k_en_de",
)
# By the kind of model: the files of Hugging Face's form beside the weights that all models have, and others.
OTHER_FORMS = {
    "marian": (("vocab.json", "source.spm", "target.spm"), ("target_vocab.json", "tokenizer_config.json")),
    "m2m_100": (
        ("sentencepiece.bpe.model",),
        ("vocab.json", "tokenizer_config.json", "special_tokens_map.json", "tokenization_small100.py"),
    ),
}
WEIGHTS = ("model.safetensors", "pytorch_model.bin")  # of Hugging Face's form, whole or in shards
MARKS = (CONFIG_FILE, METADATA_FILE)
RECIPE_FILE = "recipe.json"  # in a run's folder, beside its preset


def located(preset: str | os.PathLike | Preset) -> Preset:
    """Return a trained preset, or a repository to convert. Arguments and errors are those of `place_of`."""
    return preset if isinstance(preset, Preset) else Preset(place_of(preset), os.fspath(preset))


def place_of(preset: str | os.PathLike) -> Path:
    """Return the folder of a trained preset, or of a repository to convert. Fetch a handle's unless cached.

    Args:
        preset: a folder written by `save_to_preset` or by `kzoo train`, or one whose folders `1`, `2`, …
            hold presets, of which the last is taken; a name on the shelf; or a handle, such as
            `"hf://user/repository"` or `"kaggle://user/model/keras/variation"`.

    Raises:
        UserError: no preset has that name, or only a builder, which has no weights; it cannot be fetched.
    """
    name = os.fspath(preset)
    if not name:
        raise UserError("the preset's name is empty: give a name, a folder, hf://… or kaggle://…")
    if "://" in name:
        return fetched(name)
    newest = str(newest_version(name) or "")
    for folder in (Path(name), Path(name) / "preset", Path(name) / newest, SHELF / name):
        if _has_preset(folder):
            return folder
    raise UserError(_why_not(name))


def newest_version(folder: str | os.PathLike) -> int | None:
    """Return the greatest number that names a preset's folder in a folder, such as `3`; else `None`."""
    return max((number for number, is_preset in versions(folder).items() if is_preset), default=None)


def versions(folder: str | os.PathLike) -> dict[int, bool]:
    """Return the numbers that name folders in a folder, each with whether a preset is in it."""
    folders = [one for one in Path(folder).glob("[1-9]*") if one.name.isdecimal() and one.is_dir()]
    return {int(one.name): _has_preset(one) for one in folders}


def _has_preset(folder: Path) -> bool:
    return any((folder / mark).is_file() for mark in MARKS)


def is_original_marian(path: Path) -> bool:
    """Return whether a folder or a ZIP archive has a model as Marian writes it."""
    names = [part.name for part in path.iterdir()] if path.is_dir() else []
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    endings = {Path(name).suffix for name in names}
    return ".npz" in endings and bool(endings & {".yml", ".spm"})


def _why_not(name: str) -> str:
    if name in BUILDERS:
        return f"{name} has no weights yet: train it, or build it untrained with kzoo.presets.{name}()"
    if (Path(name) / RECIPE_FILE).is_file():
        return f"{name} is a run without a preset yet: resume it with `kzoo train`"
    if is_original_marian(Path(name)):
        return (
            f"{name} is a Marian model in its original form: give Hugging Face's form of it, such as "
            "hf://Helsinki-NLP/opus-mt-en-de"
        )
    if Path(name).is_dir():
        return f"the folder {name} has no preset"
    if Path(name).is_file():
        return f"{name} is a file: give a preset's folder (unpack an archive)"
    if "/" in name:
        like_a_repository = re.fullmatch(f"{NAME}/{NAME}", name)
        hub = f"; a repository on Hugging Face is hf://{name}" if like_a_repository else ""
        return f"no folder {name}: give a trained preset, or the folder of a run{hub}"
    if not SHELF.is_dir():
        return (
            f"no trained preset {name!r}: install the shelf with `pip install ./presets` in a clone of kzoo, "
            "or give a folder, hf://… or kaggle://…"
        )
    return f"no trained preset {name!r}; {nearest(name, shelved())}"


def shelved() -> list[str]:
    """Return the names of the presets on the shelf, sorted."""
    return sorted(path.parent.name for path in SHELF.glob(f"*/{CONFIG_FILE}"))


def fetched(handle: str) -> Path:
    """Return the cached folder of a handle's preset. Fetch the preset if it is not cached.

    The folder is written atomically, even if several processes fetch it. Later calls need no network.
    Without a revision or version, the newest one is fetched and then never updated.

    Args:
        handle: in one of the `FORMS`.

    Raises:
        UserError: no such handle, no network, not a preset of kzoo, or a file is missing or altered.
    """
    place, fetch = parse_handle(handle)
    folder = cache_folder() / "presets" / place
    if folder.is_dir():
        return folder
    try:
        with atomic_folder(folder, replace=False) as unfinished:
            _fill(unfinished, handle, fetch)
    except UserError:
        if not folder.is_dir():  # else another process was first
            raise
    return folder


def parse_handle(handle: str) -> tuple[str, Fetch]:
    """Return a handle's path within the cache, and the function that fetches its files.

    Raises:
        UserError: the handle has none of the `FORMS`.
    """
    if match := HUGGING_FACE.fullmatch(handle):
        repository, revision = match.groups()

        def fetch(names: Sequence[str], folder: Path):
            from huggingface_hub import snapshot_download

            patterns = [glob.escape(name) for name in names]
            snapshot_download(repository, revision=revision, allow_patterns=patterns, local_dir=folder)

        return f"hf/{repository}/{quote(revision or 'main', safe='')}", fetch
    if match := KAGGLE.fullmatch(handle):
        model, version = match.groups()

        def fetch(names: Sequence[str], folder: Path):
            from kagglehub import model_download

            for name in names:
                found = model_download(handle.removeprefix("kaggle://"), name, output_dir=str(folder))
                if Path(found) != folder / name:  # Kaggle's notebooks have their own folder
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    shutil.copyfile(found, folder / name)

        return f"kaggle/{model}/{version or 'latest'}", fetch
    raise UserError(f"unknown handle {handle!r}; the forms are {FORMS}")


def _fill(folder: Path, handle: str, fetch: Fetch):
    """Fetch and check a preset's files, or fetch those of a model in Hugging Face's form."""

    def get(*names: str):
        try:
            fetch(names, folder)
        except Exception as error:  # the packages' error classes differ and change
            raise UserError(
                f"{handle}: {names[0]} cannot be fetched ({first_line(error):.160}), and the preset is not "
                f"in the cache {cache_folder() / 'presets'}; check the handle and the network"
            ) from None

    get(METADATA_FILE)
    metadata = folder / METADATA_FILE
    if not (metadata.is_file() and read_object(metadata).get("files")):  # OPUS-MT's own lists none
        get(CONFIG_FILE)
    preset = Preset(folder, handle, remedy="fetch it again later, or contact its author")
    if preset.is_converted:
        needed, others = OTHER_FORMS[preset.model_type]
        get(*needed, *others)
        needed = [*needed, *_fetched_weights(folder, get)]
        # If a request fails, Hugging Face's package returns a folder with the files of the one before.
        if missing := [name for name in needed if not (folder / name).is_file()]:
            raise UserError(
                f"{handle}: {', '.join(missing)} cannot be fetched: check the network, and whether the "
                "repository has it; if not, kzoo cannot read the model"
            )
    else:
        get(*preset.files)
        preset.check()
        for name in NOTES:
            with contextlib.suppress(UserError):  # not every author writes them
                get(name)
    for notes in (".cache", ".complete"):  # written by the two packages
        shutil.rmtree(folder / notes, ignore_errors=True)


def _fetched_weights(folder: Path, get: Callable) -> list[str]:
    """Fetch a model's weights in Hugging Face's form, whole or in shards; return the files' names."""
    for name in WEIGHTS:
        get(name, index := f"{name}.index.json")
        if (folder / name).is_file():
            break
        if (folder / index).is_file():
            listed = read_object(folder / index).get("weight_map")
            if shards := sorted(set(map(str, listed.values()))) if isinstance(listed, dict) else []:
                get(*shards)
                return shards
    return [name]
