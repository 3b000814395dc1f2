"""Exports a translator in the formats of other programs: as a SavedModel, or as a CTranslate2 model.

A SavedModel translates from text to text, with the whole search inside. Loading one needs
only tensorflow and tensorflow_text.
"""

import os
import warnings
from collections.abc import Callable

import keras

from kzoo.engine import differing_settings, why_not_searched
from kzoo.engine.conversion import convert, temporary_preset
from kzoo.engine.translator import search_arguments
from kzoo.errors import UserError
from kzoo.export.early_checks import check_precision, check_saved_model
from kzoo.files import check_replaceable
from kzoo.models.preset_checks import check_float16


def export_saved_model(
    translator: keras.Model,
    folder: str | os.PathLike,
    beam_size: int | None = None,
    length_penalty: float | Callable | None = None,
    precision: str = "float32",
):
    """Write a SavedModel.

    Its signatures take texts `(B,)`; B may be 0. Sentences and prefixes that are too long for the model are
    cut. The search settings are fixed. Texts in capitals are read as they are, and characters that the
    vocabulary lacks are unknown, also to a model that reads glyphs.

        serving_default   text → translation (B,), score (B,)
        n_best            text → translation (B, K), score (B, K), best first; "" and -1e9 if there are fewer
        prefixed          text, prefix → the same; the translations begin with the prefix, unless it is "";
                          a character that the vocabulary lacks is an error
        embed             text, language → embedding (B, k·D); only with an attention bridge

    A multilingual model also takes `source_language` and `target_language`, strings `(B,)`. A model that
    reads pictures takes `image`, strings `(B,)` of encoded JPEG or PNG files. A model that reads features
    takes `image`, float32 `(B, *image_shape)`.

    Args:
        translator: a `Translator` or a `MultilingualTranslator`.
        folder: folder to write, completely or not at all; an earlier export is replaced.
        beam_size: int. K. Search settings that are not given come from the translator's `search`.
        length_penalty: as in `Translator.translate`.
        precision: of the stored weights: `"float32"`; `"float16"`, with float32 computations; or `"int8"`.

    Raises:
        UserError: another precision, a backend other than TensorFlow, an invalid beam size or length penalty,
            a tokenizer that cannot run in TensorFlow's graph, a weight too large for float16, or a folder
            with other contents.
    """
    check_saved_model(folder, precision, keras.backend.backend())
    search = translator.search.changed(beam_size=beam_size, length_penalty=length_penalty)
    from kzoo.export.graph_translator import save_graph  # imports TensorFlow

    save_graph(translator, folder, search, precision)


def export_ctranslate2(translator, folder: str | os.PathLike, precision: str = "float32"):
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
        translator: a `Translator` on a `TransformerBackbone` that reads text only, without rotary or
            per-head positions. Its `search` is written too.
        folder: folder to write, completely or not at all; an earlier export is replaced.
        precision: of the weights: `"float32"`, `"float16"` or `"int8"`.

    Raises:
        UserError: the format does not support the translator, its length penalty, its maximum length or its
            punctuation rules; the translator is quantized; a weight is too large for float16; the folder has
            other contents.
    """
    check_precision(precision)
    if reason := why_not_searched(translator.search):
        raise UserError(reason)
    if getattr(translator.source_tokenizer, "normalize_punctuation", None):
        raise UserError(
            "a CTranslate2 model cannot normalize punctuation: set normalize_punctuation to None first"
        )
    sides = [f"{side}.{kind}" for side in ("source", "target") for kind in ("spm", "json")]
    check_replaceable(folder, "model.bin", "config.json", "*vocabulary.json", "translate_batch.json", *sides)
    if precision == "float16":
        check_float16(translator.backbone.weights)
    most = translator.backbone.max_length
    search = translator.search.changed(max_length=min(translator.search.max_length or most, most))
    with temporary_preset(translator) as preset:
        convert(preset, folder, precision, search_arguments(search))
    if search.beam_size > 1 and (differing := differing_settings(translator.search)):
        warnings.warn(
            f"{folder}: with {' and '.join(differing)}, CTranslate2's beam search finds other translations "
            "than Translator.translate: for the same, leave them out or set beam_size=1",
            stacklevel=2,
        )
