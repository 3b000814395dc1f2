"""The formats of exports, for the command, the translator's method and the exports; imports no Keras.

A format has one name: `kzoo export --format NAME`, `translator.export(…, format="NAME")` and
`kzoo.export.export_NAME`.
"""

import importlib
import os

from kzoo.errors import UserError

FORMATS = {
    "saved_model": "a TensorFlow SavedModel from text to text",
    "ctranslate2": "a CTranslate2 model",
    "argos": "a package for Argos Translate",
}
PRECISIONS = ("float32", "float16", "int8")


def export(
    translator, path: str | os.PathLike, format: str = "saved_model", precision: str = "float32", **search
):
    """Write a translator in a format, by the format's function, which is imported for it.

    Args:
        translator: as that function takes it.
        path: folder or file to write.
        format: a name in `FORMATS`.
        precision, **search: as of that function.

    Raises:
        UserError: another format, or as that function.
    """
    if format not in FORMATS:
        raise UserError(f"format must be one of {', '.join(FORMATS)}, not {format!r}")
    write = getattr(importlib.import_module("kzoo.export"), f"export_{format}")
    write(translator, path, precision, **search)


def check_precision(precision: str):
    """Raise `UserError` for an unknown precision."""
    if precision not in PRECISIONS:
        raise UserError(f"precision must be one of {', '.join(PRECISIONS)}, not {precision!r}")
