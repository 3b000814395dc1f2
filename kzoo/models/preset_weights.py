"""A preset's weights and vocabularies, compared with its configuration before its model is built."""

import os
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import h5py
import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError

# Sizes of text and pictures, such as `max_length`, need not be an axis of a weight: they may be up to this.
LARGEST = 2**16


def check_weights(preset: str | os.PathLike, configuration: dict, files: list[Path]):
    """Refuse weights that are not those of a configuration's model.

    Args:
        preset: its name in errors.
        configuration: of the backbone, as Keras serializes it.
        files: HDF5 files that together have the weights.

    Raises:
        UserError: a size beyond those of the weights; weights that are missing, left over or of another
            shape; values that are not finite numbers, or that are in another file.
    """
    found = Counter(weight.shape for file in files for weight in _weights(file))
    _check_sizes(preset, configuration["config"], found)
    expected = _shapes(configuration)
    for shape in sorted({*found, *expected}):
        if found[shape] != expected[shape]:
            raise UserError(
                f"preset {preset}: its configuration is of a model with {expected[shape]} weights of shape "
                f"{shape}, but {', '.join(file.name for file in files)} has {found[shape]} of them"
            )
    for file in files:
        for weight in _weights(file):
            if weight.external or weight.is_virtual or not _is_finite(weight):
                raise UserError(
                    f"preset {preset}: {weight.name} in {file.name} is not an array of finite numbers"
                )


def _weights(file: Path) -> Iterator[h5py.Dataset]:
    """Yield the arrays of a file; links are not followed."""
    with h5py.File(file) as opened:
        names = []
        opened.visit(names.append)
        yield from (opened[name] for name in names if isinstance(opened[name], h5py.Dataset))


def _is_finite(weight: h5py.Dataset) -> bool:
    return weight.dtype.kind in "fiub" and bool(np.isfinite(weight[()]).all())


def _check_sizes(preset: str | os.PathLike, settings: dict, found: Counter):
    """Refuse settings with which building a model, even without values, would take too much time or memory.

    Every layer has weights of its own, and a list has a size for each of several layers.
    """
    count, largest = found.total(), max((LARGEST, *(size for shape in found for size in shape)))
    waiting = list(settings.items())
    while waiting:
        name, value = waiting.pop()
        size, most = value, count if name.endswith("layers") else largest
        if isinstance(value, dict):
            waiting += value.items()
        elif isinstance(value, list):
            waiting += [(name, one) for one in value]
            size, most = len(value), max(count, 3)  # 3: a picture's shape
        if isinstance(size, int) and size > most:
            raise UserError(
                f"preset {preset}: its configuration has {name} {size}, but its weights allow at most {most}"
            )


def _shapes(configuration: dict) -> Counter:
    """Return how many weights of each shape a configuration's model has; they are given no values."""

    def build():
        with keras.StatelessScope(initialize_variables=False):
            return keras.saving.deserialize_keras_object(configuration)

    # In a thread of its own, which has its own list of the variables that Keras will give values to.
    with ThreadPoolExecutor(1) as thread:
        return Counter(tuple(weight.shape) for weight in thread.submit(build).result().weights)


def check_vocabularies(preset: str | os.PathLike, settings: dict, tokenizers: list[Tokenizer]):
    """Refuse tokenizers with more tokens than the model has vectors for.

    Args:
        preset: its name in errors.
        settings: of the backbone.
        tokenizers: of the source and the target; or of each language.

    Raises:
        UserError: names the first one.
    """
    source, target = (settings.get(f"{side}_vocabulary_size") for side in ("source", "target"))
    sizes = settings.get("vocabulary_sizes") or (source, target or source)
    for tokenizer, size in zip(tokenizers, sizes, strict=False):
        if size is not None and tokenizer.vocabulary_size() > size:
            raise UserError(
                f"preset {preset}: {tokenizer.config_file} has {tokenizer.vocabulary_size()} tokens, "
                f"but its model only {size}"
            )
