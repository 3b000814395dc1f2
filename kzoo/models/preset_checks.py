"""Checks of a preset before anything in it is used.

A preset may be untrusted. Its JSON may name classes of kzoo and keras-hub, but no other code and no
paths: Keras's safe mode refuses pickled functions, but imports any class that a configuration names. Weights
and vocabularies must fit the configuration and be small enough to build.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import h5py
import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.hub.preset import Preset, holds_values
from kzoo.models.backbones import without_values

IDENTITY = ("module", "class_name", "registered_name")  # how Keras finds a class
PACKAGES = ("kzoo", "keras_hub")
KINDS = {"f": "floating-point numbers", "i": "whole numbers", "u": "whole numbers", "b": "bits"}
DATA_TYPE = ("keras", "DTypePolicy", None)  # the only class of Keras itself in presets
PART = 2**20  # numbers that are read at a time


def check_object(configuration: dict, where: str):
    """Check an object's configuration from a preset's JSON file, without building the object.

    Args:
        configuration: as Keras serializes the object.
        where: the file, named in errors.

    Raises:
        UserError: it names no class, a class of another package, or a path.
    """
    _check_class(*(configuration.get(key) for key in IDENTITY), where)
    check_settings(configuration, where)


def check_settings(configuration: dict, where: str):
    """Check the contents of a preset's JSON file, without building anything.

    Raises:
        UserError: they name a class of another package, or a path.
    """
    waiting = [configuration]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            if any(key in part for key in IDENTITY):
                _check_class(*(part.get(key) for key in IDENTITY), where)
            waiting.extend(value for key, value in part.items() if key not in IDENTITY)
        elif isinstance(part, list):
            waiting.extend(part)
        elif isinstance(part, str) and ("/" in part or "\\" in part or part == ".."):
            raise UserError(f"{where} names the path {part!r:.80}: a preset has its files in its own folder")


def _check_class(module, class_name, registered_name, where: str):
    if (module, class_name, registered_name) == DATA_TYPE:
        return
    named = registered_name if isinstance(registered_name, str) else ""
    package, separator, _ = named.partition(">")
    home = module.split(".")[0] if isinstance(module, str) else None
    # Keras decides by the class name first: "__lambda__" is code.
    if not separator or package not in PACKAGES or home != package or named != f"{package}>{class_name}":
        named = f"{module}.{class_name}"
        raise UserError(
            f"{where} names the class {named:.80} ({registered_name!r:.80}): a preset may only name "
            f"classes of {' and '.join(PACKAGES)}; it was not loaded"
        )
    if keras.saving.get_registered_object(named) is None:  # `kzoo.models` has registered all classes
        raise UserError(f"{where} names the class {named!r:.80}, which this kzoo does not know: update kzoo")


def check_weights(preset: Preset, files: list[Path]):
    """Check that the weights in a preset's HDF5 files fit its backbone's configuration.

    Raises:
        UserError: weights that are missing, unexpected, of another shape or of another kind of numbers;
            values that are not finite, or stored in another file.
    """
    found, expected = Counter(), _shapes(preset.backbone)
    for file in files:
        for weight in _weights(file):
            numbers = holds_values(weight) and weight.dtype.kind in KINDS
            if not (numbers and _is_finite(weight)):
                raise UserError(f"{preset}: {weight.name} in {file.name} is not an array of finite numbers")
            found[weight.shape, weight.dtype.kind] += 1
    for shape, kind in sorted({*found, *expected}):
        if found[shape, kind] != expected[shape, kind]:
            raise UserError(
                f"{preset}: its configuration has {expected[shape, kind]} weights of shape {shape} "
                f"with {KINDS[kind]}, but {', '.join(file.name for file in files)} has {found[shape, kind]}"
            )


def _is_finite(weight: h5py.Dataset) -> bool:
    """Return whether all numbers of an array are finite. It is read in parts, which take little memory."""
    if not weight.size or not weight.ndim:
        return bool(np.isfinite(weight[()]).all())
    rows = max(1, PART * len(weight) // weight.size)
    return all(np.isfinite(weight[first : first + rows]).all() for first in range(0, len(weight), rows))


def _weights(file: Path) -> Iterator[h5py.Dataset]:
    """Yield the arrays of a file; links are not followed."""
    with h5py.File(file) as opened:
        names = []
        opened.visit(names.append)
        yield from (opened[name] for name in names if isinstance(opened[name], h5py.Dataset))


def _shapes(configuration: dict) -> Counter:
    """Count the weights of each shape and kind in a configuration, without creating their values."""
    weights = without_values(lambda: keras.saving.deserialize_keras_object(configuration)).weights
    return Counter((tuple(weight.shape), np.dtype(weight.dtype).kind) for weight in weights)


def check_vocabularies(preset: Preset, tokenizers: list[Tokenizer]):
    """Check that no tokenizer has more tokens than the model's vocabulary.

    Args:
        preset: the preset.
        tokenizers: those of the source and the target, or of each language.
    """
    settings = preset.backbone["config"]
    source, target = (settings.get(f"{side}_vocabulary_size") for side in ("source", "target"))
    sizes = settings.get("vocabulary_sizes") or (source, target or source)
    for tokenizer, size in zip(tokenizers, sizes, strict=False):
        if size is not None and tokenizer.vocabulary_size() > size:
            raise UserError(
                f"{preset}: {tokenizer.config_file} has {tokenizer.vocabulary_size()} tokens, "
                f"but its model only {size}"
            )


def check_finite(weights: Iterable[keras.Variable]):
    """Raise `UserError` for a weight that is not finite."""
    for weight in weights:
        if keras.backend.is_float_dtype(weight.dtype) and not keras.ops.all(keras.ops.isfinite(weight)):
            raise UserError(f"weight {weight.path} is not finite: use an earlier checkpoint, or train again")


def check_float16(weights: Iterable[keras.Variable]):
    """Raise `UserError` for a float32 weight with a number that would become infinite in float16."""
    for weight in weights:
        if weight.dtype != "float32":
            continue
        values = np.abs(keras.ops.convert_to_numpy(weight))
        largest, most = values.max(where=np.isfinite(values), initial=0), float(np.finfo("float16").max)
        if largest > most:
            raise UserError(
                f"weight {weight.path} has a number of size {largest:,.0f}, but float16 holds at most "
                f"{most:,.0f}: use an earlier checkpoint or retrain with a lower rate or a clip_norm. "
                'float32 holds it: save_to_preset(…, dtype="float32"), or an export in float32'
            )
