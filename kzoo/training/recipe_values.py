"""The values that a recipe's keys may have."""

import math
from types import UnionType
from typing import get_args, get_origin

from kzoo.errors import UserError

AT_LEAST = {
    "vocabulary_size": 5,
    "tokens": 2,
    "num_shapes": 1,
    "sentences": 0,
    "batches_per_epoch": 0,
    "validation_sentences": 0,
    "rate": 0,
    "halve_after": 0,
    "language_model_epochs": 0,
    "epochs": 1,
    "steps": 0,
    "patience": 0,
    "warmup_steps": 1,
    "rate_factor": 0,
    "beta_2": 0,
    "label_smoothing": 0,
    "consistency": 0,
    "clip_norm": 0,
    "accumulate": 1,
    "average": 1,
    "checkpoint_minutes": 0,
    "checkpoints_kept": 1,
    "seed": 0,
    "beam_size": 1,
}
LESS_THAN = {"beta_2": 1, "label_smoothing": 1, "seed": 2**32}
ONE_OF = {
    "precision": ("float32", "mixed_bfloat16", "mixed_float16"),
    "text": ("raw", "lowercased", "truecased"),
    "source_characters": ("", "seen", "common"),
    "optimizer": ("noam", "adam", "sgd"),
    "too_long": ("error", "truncate", "drop"),
}


HELD_OUT = ("val", "test")  # files, or a part of the training files
NUMBERED = ("columns",)  # names, or numbers


def kind_of(annotation) -> type:
    """Return the type of a key's values; of several, the first."""
    first = get_args(annotation)[0] if isinstance(annotation, UnionType) else annotation
    return get_origin(first) or first


def checked_value(key: str, value, kind: type, where: str):
    """Return the value of a key as its field has it: a float where an int was given, a list for a tuple.

    Args:
        key: name of a field of `kzoo.training.Recipe`.
        value: as read.
        kind: the field's type; of lists, all items are strings, but for those in `NUMBERED`.
        where: the recipe's name in errors.

    Raises:
        UserError: the key cannot have this value.
    """
    if key in HELD_OUT and type(value) in (int, float):
        if not (value >= 1 if type(value) is int else 0 < value < 1):
            raise UserError(f"{where}: {key} is {value!r}, neither a number of rows nor a share such as 0.05")
        return value
    if key in NUMBERED and value and all(type(item) is int and item > 0 for item in _listed(value)):
        return list(value)
    if kind is list:
        if not all(isinstance(item, str) for item in _listed(value)):
            raise UserError(f'{where}: {key} is {value!r}, not a list of strings, such as ["a", "b"]')
    elif type(value) is not kind and not (kind is float and type(value) is int):
        raise UserError(f"{where}: {key} is {value!r}, not of type {kind.__name__}")
    if kind is float and not math.isfinite(value):
        raise UserError(f"{where}: {key} is {value!r}, not a finite number")
    if key in AT_LEAST and value < AT_LEAST[key]:
        raise UserError(f"{where}: {key} is {value!r}; it must be at least {AT_LEAST[key]}")
    if key in LESS_THAN and value >= LESS_THAN[key]:
        raise UserError(f"{where}: {key} is {value!r}; it must be less than {LESS_THAN[key]:,}")
    if key in ONE_OF and value not in ONE_OF[key]:
        raise UserError(f"{where}: {key} is {value!r}, not one of {', '.join(ONE_OF[key])}")
    return kind(value)


def _listed(value) -> list | tuple:
    """Return a list; of anything else, a list that no check passes."""
    return value if isinstance(value, list | tuple) else [None]
