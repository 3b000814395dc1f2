"""Exports a translator or a preset as a CTranslate2 model; imports no Keras."""

import os
import warnings

from kzoo.engine.choice import check_supported, differing_settings
from kzoo.engine.conversion import as_preset, convert
from kzoo.engine.translator import search_arguments
from kzoo.errors import UserError
from kzoo.export_formats import check_precision
from kzoo.files import check_replaceable


def export_ctranslate2(translator, folder: str | os.PathLike, precision: str = "float32", **search):
    """Write a translator as a CTranslate2 model, with its SentencePiece models beside it.

    `ctranslate2.Translator(folder)` takes the pieces of `source.spm`, adds the end symbol, and returns the
    pieces of `target.spm`. To search like `Translator.translate`, pass the arguments in
    `translate_batch.json` to `translate_batch`; but without a maximum length in the translator's search,
    outputs can be as long as the model allows. With `min_length`, `no_repeat_ngram` or α = 0, CTranslate2's
    beam search finds other translations than Keras's: this warns. A Marian model's target language is a piece
    that you put first, such as `>>fra<<`. M2M-100 and NLLB-200 take the source's language there, such as
    `__en__`, and the target's as `target_prefix`. The format stores position tables and T5's bias, so
    Legendre positions and `position_encoding="bias"` are supported.

    Args:
        translator: a `Translator` on a `TransformerBackbone` that reads text only, without PoPE in each head;
            or a preset of one, as `kzoo.presets.locate` returns it, for which Keras is not imported.
        folder: folder to write, completely or not at all; an earlier export is replaced.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.
        **search: search settings that replace the translator's, as in `SearchSettings.changed`.

    Raises:
        UserError: the format does not support the translator, its length penalty, its maximum length or its
            punctuation rules; the translator is quantized; a weight is too large for float16; the preset is
            damaged; the folder has other contents.
    """
    check_precision(precision)
    search = translator.search.changed(**search)
    sides = [f"{side}.{kind}" for side in ("source", "target") for kind in ("spm", "json")]
    check_replaceable(folder, "model.bin", "config.json", "*vocabulary.json", "translate_batch.json", *sides)
    with as_preset(translator) as preset:
        check_supported(preset, search)
        if preset.object(preset.settings["tokenizers"][0])["config"].get("normalize_punctuation"):
            raise UserError(
                "a CTranslate2 model cannot normalize punctuation: set normalize_punctuation to None first"
            )
        preset.check()
        most = preset.backbone["config"]["max_length"]
        limited = search.changed(max_length=min(search.max_length or most, most))
        convert(preset, folder, precision, search_arguments(limited))
    if search.beam_size > 1 and (differing := differing_settings(search)):
        warnings.warn(
            f"{folder}: with {' and '.join(differing)}, CTranslate2's beam search finds other translations "
            "than Translator.translate: for the same, leave them out or set beam_size=1",
            stacklevel=2,
        )
