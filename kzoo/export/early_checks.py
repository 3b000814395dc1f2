"""What is known of an export before Keras and a model are loaded, which takes seconds."""

import os

from kzoo.errors import UserError
from kzoo.files import check_replaceable

PRECISIONS = ("float32", "float16", "int8")


def check_saved_model(folder: str | os.PathLike, precision: str, backend: str):
    """Raise `UserError` if no SavedModel can be written to a folder, as far as no model is needed to know."""
    if backend != "tensorflow":
        raise UserError(
            f"a SavedModel is written by TensorFlow, not by {backend}: "
            "load the preset with KERAS_BACKEND=tensorflow"
        )
    check_precision(precision)
    check_replaceable(folder, "saved_model.pb", "variables", "assets", "fingerprint.pb")


def check_precision(precision: str):
    """Raise `UserError` for an unknown precision."""
    if precision not in PRECISIONS:
        raise UserError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
