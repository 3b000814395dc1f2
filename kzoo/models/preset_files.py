"""A trained translator on disk: a keras-hub preset with its tokenizers and a small file of settings."""

import json
import os
from pathlib import Path

import h5py
import keras
from keras_hub.models import Backbone

from kzoo.errors import UserError
from kzoo.files import whole_folder

TRANSLATOR_FILE = "translator.json"
WEIGHTS_FILE = "model.weights.h5"  # as keras-hub names it


def write_preset(folder: str | os.PathLike, translator: keras.Model, tokenizers: list, settings: dict):
    """Write a preset: the backbone's configuration, its weights in float16, tokenizers and settings.

    Args:
        folder: where to; it appears complete or not at all, in place of an earlier one.
        translator: its class and its `backbone` are written.
        tokenizers: in the order that `read_preset` returns them; one may stand several times.
        settings: what else the translator is made from.
    """
    backbone = translator.backbone
    full = type(backbone).from_config({**backbone.get_config(), "dtype": "float32"})
    full.set_weights(backbone.get_weights())
    with whole_folder(folder) as unfinished:
        full.save_to_preset(str(unfinished))
        _halve(unfinished / WEIGHTS_FILE)
        for tokenizer in tokenizers:
            tokenizer.save_to_preset(str(unfinished))
        content = {
            "class": type(translator).__name__,
            "tokenizers": [tokenizer.config_file for tokenizer in tokenizers],
            **settings,
        }
        (unfinished / TRANSLATOR_FILE).write_text(json.dumps(content, indent=4) + "\n")


def _halve(path: Path):
    """Rewrite a weights file in float16.

    A model made in float16 would be saved so, but on JAX no LSTM can be: its first weights come from a QR
    decomposition, which JAX lacks in float16.
    """
    whole = path.rename(path.with_suffix(".full"))
    with h5py.File(whole) as full, h5py.File(path, "w") as half:

        def copy(name, item):
            if isinstance(item, h5py.Group):
                made = half.require_group(name)
            else:
                dtype = "float16" if item.dtype == "float32" else item.dtype
                made = half.create_dataset(name, data=item[()].astype(dtype))
            made.attrs.update(item.attrs)

        full.visititems(copy)
    whole.unlink()


def read_preset(folder: str | os.PathLike) -> tuple[Backbone, list, dict]:
    """Return the backbone, the tokenizers and the settings that `write_preset` wrote."""
    folder = Path(folder)
    settings = read_settings(folder)
    settings.pop("class")
    files = settings.pop("tokenizers")
    tokenizers = {}
    for file in files:
        tokenizers[file] = keras.saving.deserialize_keras_object(json.loads((folder / file).read_text()))
        tokenizers[file].load_preset_assets(str(folder))
    return Backbone.from_preset(str(folder)), [tokenizers[file] for file in files], settings


def read_settings(folder: str | os.PathLike) -> dict:
    """Return the settings of a preset: its translator's class, its tokenizers' files and its languages.

    Raises:
        UserError: the file is missing or is none of the zoo's.
    """
    path = Path(folder) / TRANSLATOR_FILE
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        if not {"class", "tokenizers"} <= set(settings):
            raise KeyError
        return settings
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError):
        raise UserError(
            f"{path} is not the settings of a kzoo preset: it lacks class or tokenizers"
        ) from None
