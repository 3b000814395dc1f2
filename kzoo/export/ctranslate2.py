"""Exports a Transformer to CTranslate2, a fast inference engine."""

import os
import tempfile
from pathlib import Path

from kzoo.engine import why_not_searched
from kzoo.engine.conversion import convert
from kzoo.engine.translator import search_arguments
from kzoo.errors import UserError
from kzoo.export.precision import check_precision
from kzoo.files import check_replaceable
from kzoo.models.ctranslate2_copy import why_not
from kzoo.models.preset_checks import check_float16


def export_ctranslate2(translator, folder: str | os.PathLike, precision: str = "float32"):
    """Write a translator as a CTranslate2 model, with its SentencePiece models beside it.

    `ctranslate2.Translator(folder)` takes the pieces of `source.spm`, adds the end symbol, and returns the
    pieces of `target.spm`. To search like `Translator.translate`, pass the arguments in
    `translate_batch.json` to `translate_batch`. The format stores position tables and T5's bias, so Legendre
    positions and `position_encoding="bias"` are supported.

    Args:
        translator: a `Translator` on a `TransformerBackbone` that reads text only, without rotary positions
            and positions in the heads. Its `search` is written too.
        folder: folder to write, completely or not at all; an earlier export is replaced.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.

    Raises:
        UserError: the format does not support the translator, or its length penalty; the translator is
            quantized; a weight is too large for float16; the folder has other contents.
    """
    check_precision(precision)
    if reason := why_not_searched(translator.search):
        raise UserError(f"{reason}: give α with --length-penalty, or in the translator's search")
    if reason := why_not(translator):
        raise UserError(reason)
    check_replaceable(folder, "model.bin")
    if precision == "float16":
        check_float16(translator.backbone.weights)
    with tempfile.TemporaryDirectory() as place:
        preset = Path(place) / "preset"
        translator.save_to_preset(preset, dtype="float32")
        convert(preset, folder, precision, search_arguments(translator.search))
