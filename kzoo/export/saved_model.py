"""Exports translators as TensorFlow SavedModels, from text to text, with the whole search inside.

To load one, only tensorflow and tensorflow_text are necessary.
"""

import os
from collections.abc import Callable

import keras

from kzoo.errors import UserError
from kzoo.export.precision import check_precision
from kzoo.files import check_replaceable


def export_saved_model(
    translator: keras.Model,
    folder: str | os.PathLike,
    beam_size: int | None = None,
    length_penalty: float | Callable | None = None,
    precision: str = "float32",
):
    """Write a SavedModel.

    Its signatures take texts `(B,)`; B may be 0. Sentences and prefixes that are too long for the model are
    cut. The settings of the search are fixed.

        serving_default   text → translation (B,), score (B,)
        n_best            text → translation (B, K), score (B, K), best first; "" and -1e9 if there are fewer
        prefixed          text, prefix → the same; the translations begin with the prefix, unless it is ""
        embed             text, language → embedding (B, k·D); only with an attention bridge

    A multilingual model also takes `source_language` and `target_language`, strings `(B,)`. A model that
    reads pictures takes `image`, strings `(B,)` of encoded JPEG or PNG files. A model that reads features
    takes `image`, float32 `(B, *image_shape)`.

    Args:
        translator: a `Translator` or a `MultilingualTranslator`.
        folder: folder to write, completely or not at all; an earlier export is replaced.
        beam_size: int. K. The search settings come from the translator's `search`, except those given here.
        length_penalty: as in `Translator.translate`.
        precision: of the stored weights: `"float32"`; `"float16"`, computing in float32; `"int8"`.

    Raises:
        UserError: another precision, a backend other than TensorFlow, an invalid beam size or length penalty,
            a tokenizer that cannot run in TensorFlow's graph, a weight too large for float16, or a folder
            with other contents.
    """
    if keras.backend.backend() != "tensorflow":
        raise UserError(
            f"a SavedModel is written by TensorFlow, not by {keras.backend.backend()}: "
            "load the preset with KERAS_BACKEND=tensorflow"
        )
    check_precision(precision)
    check_replaceable(folder, "saved_model.pb")
    search = translator.search.changed(beam_size=beam_size, length_penalty=length_penalty)
    from kzoo.export.graph_translator import save_graph  # imports TensorFlow

    save_graph(translator, folder, search, precision)
