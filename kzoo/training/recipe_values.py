"""The values that a recipe's keys may have."""

import math

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
}


def checked_value(key: str, value, kind: type, where: str):
    """Return the value of a key as its field has it: a float where an int was given, a list for a tuple.

    Args:
        key: name of a field of `kzoo.training.Recipe`.
        value: as read.
        kind: the field's type; of lists, all items are strings.
        where: the recipe's name in errors.

    Raises:
        UserError: the key cannot have this value.
    """
    if kind is list:
        if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
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
