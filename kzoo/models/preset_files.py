"""Writes and reads presets: keras-hub presets with a translator's tokenizers and settings."""

import contextlib
import gc
import json
import math
import os
import re
import shutil
from pathlib import Path

import h5py
import keras
from keras_hub.models import Backbone

from kzoo.errors import UserError
from kzoo.files import atomic_folder, check_replaceable, check_space, read_object
from kzoo.hub.location import located
from kzoo.hub.preset import (
    CONFIG_FILE,
    METADATA_FILE,
    SEARCH_FILE,
    TRANSLATOR_FILE,
    Preset,
    seal,
    tokenizer_asset,
)
from kzoo.layers.layer import all_layers
from kzoo.models.backbones import is_quantized, without_initial_values
from kzoo.models.preset_checks import (
    check_float16,
    check_object,
    check_settings,
    check_vocabularies,
    check_weights,
)

WEIGHTS_FILE = "model.weights.h5"  # as keras-hub names it
SHARDS_FILE = "model.weights.json"  # of large models: lists the file of each weight
SHARD_SIZE = 0.03  # GiB of float32 per file, half as much in float16; hosts refuse large files
OWN_WEIGHTS = re.compile(r"model(_\d+)?\.weights\.h5", re.ASCII)  # whole, or a shard


def write_preset(
    folder: str | os.PathLike, translator: keras.Model, tokenizers: list, settings: dict, dtype: str
):
    """Write a preset: the backbone's configuration, its weights, tokenizers, settings, search.

    Args:
        folder: as in `Translator.save_to_preset`.
        translator: its class, `backbone` and `search` are written.
        tokenizers: in the order of the constructor's; one may occur several times.
        settings: the other arguments of the translator's constructor.
        dtype: as in `Translator.save_to_preset`.

    Raises:
        UserError: another dtype; the folder holds something other than a preset, or cannot be written; a
            weight that is not finite or too large for float16; a quantized model or one with LoRA; a
            backbone of another package; anything that `read_preset` would refuse.
    """
    if dtype not in ("float16", "float32"):
        raise UserError(f"a preset's weights are float16 or float32, not {dtype!r}")
    check_tokenizers(tokenizers)
    others = _others(Path(folder))
    backbone = translator.backbone
    if is_quantized(backbone):
        raise UserError("a preset cannot hold a quantized model: save the original one")
    if any(getattr(layer, "lora_enabled", False) for layer in all_layers(backbone)):
        raise UserError("a preset cannot hold a model with LoRA: call backbone.merge_lora() before")
    full = backbone  # in float32 without a copy, which may be gigabytes
    if backbone.dtype_policy.name != "float32":
        full = type(backbone).from_config({**backbone.get_config(), "dtype": "float32"})
        full.set_weights(backbone.get_weights())
    if dtype == "float16":
        check_float16(full.weights)
    with atomic_folder(folder) as unfinished:
        check_space(unfinished, 8 * full.count_params() + 2**20)  # float32, then float16
        # A weight cannot be split across files.
        largest = max(4 * math.prod(weight.shape) for weight in full.weights) / 2**30
        full.save_to_preset(str(unfinished), max_shard_size=max(SHARD_SIZE, largest))
        if dtype == "float16":
            for path in sorted(unfinished.glob("*.weights.h5")):
                _halve(path)
        for tokenizer in tokenizers:
            tokenizer.save_to_preset(str(unfinished))
        content = {
            "class": type(translator).__name__,
            "tokenizers": [tokenizer.config_file for tokenizer in tokenizers],
            **settings,
        }
        for file, entries in ((TRANSLATOR_FILE, content), (SEARCH_FILE, translator.search.entries())):
            (unfinished / file).write_text(json.dumps(entries, indent=4) + "\n")
        seal(unfinished)
        preset = Preset(unfinished, str(folder))
        _check_names(preset)
        check_weights(preset, _weights_files(preset))
        check_vocabularies(preset, tokenizers)
        for path in others:
            to = unfinished / path.relative_to(folder)
            if to.exists():
                continue
            if path.is_dir() and not path.is_symlink():
                shutil.copytree(path, to, symlinks=True)
            else:
                to.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, to, follow_symlinks=False)
    if full is not backbone:
        del full
        gc.collect()  # a Keras model refers to itself: each validation would leave a copy in memory


def check_tokenizers(tokenizers: list):
    """Raise `UserError` for a tokenizer that is missing or empty, or for two different ones with one file."""
    if None in tokenizers:
        raise UserError("this model has no tokenizer: build it with one")
    for tokenizer in tokenizers:
        tokenizer(["a"])  # an error if it has no vocabulary

    def content(tokenizer) -> tuple:
        return type(tokenizer), tokenizer.get_vocabulary(), {**tokenizer.get_config(), "name": None}

    by_file = {}
    for tokenizer in tokenizers:
        first = by_file.setdefault(tokenizer.config_file.lower(), tokenizer)  # some disks ignore case
        if first is not tokenizer and content(first) != content(tokenizer):
            raise UserError(
                f"two tokenizers would be saved as {tokenizer.config_file}: give each a file of its own, "
                'as in SubwordTokenizer(model, config_file="target_tokenizer.json")'
            )


def _others(folder: Path) -> list[Path]:
    """Return the files in a preset's folder that are not the preset's own, such as the card and the scores.

    Raises:
        UserError: the folder is not empty and holds no preset; its metadata or settings cannot be read.
    """
    for mark in (METADATA_FILE, TRANSLATOR_FILE):
        check_replaceable(folder, mark, "*")
    if not (folder / METADATA_FILE).exists():
        return []
    listed = read_object(folder / METADATA_FILE).get("files") or ()
    tokenizers = [str(name) for name in read_object(folder / TRANSLATOR_FILE).get("tokenizers") or ()]
    files = {CONFIG_FILE, TRANSLATOR_FILE, SEARCH_FILE, SHARDS_FILE, *tokenizers}
    assets = tuple(tokenizer_asset(name, "") for name in tokenizers)
    # `seal` lists what else stands there, so being listed is not enough.
    own = {n for n in listed if n in files or OWN_WEIGHTS.fullmatch(n) or n.startswith(assets)}
    found = [path for path in folder.iterdir() if path.name != METADATA_FILE]
    if (assets_folder := folder / "assets").is_dir():
        found.remove(assets_folder)
        found += [path for path in assets_folder.rglob("*") if path.is_symlink() or not path.is_dir()]
    return [path for path in found if path.relative_to(folder).as_posix() not in own]


def _halve(path: Path):
    """Rewrite a weights file in float16.

    Saving a model built in float16 would do the same, but on JAX an LSTM cannot be built in float16: its
    initial weights come from a QR decomposition, which JAX does not support in float16.
    """
    whole = path.rename(path.with_suffix(".full"))
    with h5py.File(whole) as full, h5py.File(path, "w") as half:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                made = half.require_group(name)
            else:
                dtype = "float16" if item.dtype == "float32" else item.dtype
                # Bitmaps shrink to a tenth; other weights would shrink by only 5 %.
                bitmaps = {"compression": "gzip"} if item.ndim and item.dtype == "bool" else {}
                made = half.create_dataset(name, data=item[()].astype(dtype), **bitmaps)
            made.attrs.update(item.attrs)

        full.visititems(copy)
    whole.unlink()


def read_preset(
    preset: str | os.PathLike | Preset, translator: type[keras.Model], **overrides
) -> keras.Model:
    """Return the translator that `write_preset` wrote, with its search settings.

    Before building anything, check every file against its checksum, every name in it against those allowed
    in a preset, and the weights against the configuration.

    Args:
        preset: what `kzoo.presets.locate` returns, or a folder, a name on the shelf, or a handle.
        translator: the class to build: the preset's, or a subclass.
        **overrides: arguments of the backbone that replace the saved ones: those in
            `kzoo.hub.preset.OVERRIDES`.

    Raises:
        UserError: there is no such preset; a file is missing or altered; the format is newer than this kzoo;
            the preset holds another class of translator, or names a class or file that presets may not
            contain; weights or vocabularies do not fit the model; an override that is not allowed.
    """
    preset = located(preset)
    if preset.is_converted and not preset.conversion:
        raise UserError(f"{preset} is not in kzoo's form: kzoo.presets.load converts it")
    preset.require(CONFIG_FILE, TRANSLATOR_FILE)
    preset.check()
    _check_names(preset)
    settings = dict(preset.settings)
    kind, files = settings.pop("class"), settings.pop("tokenizers")
    several = "languages" in settings
    if kind not in [one.__name__ for one in translator.__mro__] or translator.multilingual != several:
        raise UserError(
            f"{preset} holds a {kind!r:.80}, not a {translator.__name__}: read it with kzoo.presets.load"
        )
    settings["search"] = preset.search
    with _in_one_line(preset, overrides):
        preset.check_overrides(overrides)
        check_weights(preset, _weights_files(preset))
        by_file = {file: _read_tokenizer(preset, file) for file in dict.fromkeys(files)}
        tokenizers = [by_file[file] for file in files]
        check_vocabularies(preset, tokenizers)
        folder = str(preset.folder)
        backbone = without_initial_values(lambda: Backbone.from_preset(folder, **overrides))
        if several:
            tokenizers = [dict(zip(settings.pop("languages"), tokenizers, strict=True))]
        return translator(backbone, *tokenizers, **settings)


def _check_names(preset: Preset):
    """Raise `UserError` for a class or a path in a preset's JSON files that a preset may not contain."""
    check_settings(preset.object(TRANSLATOR_FILE), preset.where(TRANSLATOR_FILE))
    check_object(preset.object(CONFIG_FILE), preset.where(CONFIG_FILE))
    for file in preset.settings["tokenizers"]:
        check_object(preset.object(file), preset.where(file))


def _weights_files(preset: Preset) -> list[Path]:
    """Return the files of the weights: one, or those that are listed, as keras-hub chooses."""
    names = [WEIGHTS_FILE]
    if not (preset.folder / WEIGHTS_FILE).exists() and (preset.folder / SHARDS_FILE).exists():
        shards = keras.tree.flatten(preset.object(SHARDS_FILE).get("weight_map"))
        names = sorted(set(map(str, shards)))
    preset.require(*names)
    return [preset.folder / name for name in names]


@contextlib.contextmanager
def _in_one_line(preset: Preset, overrides: dict):
    """Turn any error into a one-line `UserError` that says why a preset cannot be built."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:  # from Keras, NumPy or the backend, such as out of memory
        inner = str(error).split("Exception encountered:")[-1].strip()  # Keras puts long text before it
        reason = (inner or type(error).__name__).splitlines()[0]
        changed = f" with {overrides}" if overrides else ""
        raise UserError(
            f"{preset}{changed} cannot be built by this kzoo ({reason:.160}); if a newer kzoo saved "
            "it, update; if it has layers of your own, import them first, in Python"
        ) from error


def _read_tokenizer(preset: Preset, file: str):
    """Return the tokenizer of a configuration, with its assets from the folder of the same name."""
    tokenizer = keras.saving.deserialize_keras_object(preset.object(file), safe_mode=True)
    if getattr(tokenizer, "config_file", None) != file:
        raise UserError(f"{preset.where(file)} does not configure a tokenizer that is saved as {file}")
    preset.require(*(tokenizer_asset(file, asset) for asset in tokenizer.file_assets))
    tokenizer.load_preset_assets(str(preset.folder))
    return tokenizer
