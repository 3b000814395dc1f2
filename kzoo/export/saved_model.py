"""Translators as TensorFlow SavedModels: text in, text out, the whole search inside.

`translator.export(FOLDER)` calls it. Loading one needs only tensorflow and tensorflow_text.
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
    progress: Callable[[str], None] | None = None,
):
    """Write a SavedModel.

    Its signatures take texts `(B,)`; B may be 0. Sentences and prefixes longer than the model can read or
    write are cut. All but the prefix is fixed here: beam size, length penalty, and the rest of `search`.

        serving_default   text → translation (B,), score (B,)
        n_best            text → translation (B, K), score (B, K), best first; "" and -1e9 if there are fewer
        prefixed          text, prefix → the same; translations begin with the prefix, or with anything for ""
        embed             text, language → embedding (B, k·D): only with an attention bridge

    A model of several languages also takes `source_language` and `target_language`, strings `(B,)`; one that
    reads pictures takes `image`, strings `(B,)` that hold encoded JPEG or PNG files; one that reads features
    takes `image`, float32 `(B, *image_shape)`.

    Args:
        translator: a `Translator` or a `MultilingualTranslator`.
        folder: folder to write; it appears complete or not at all, and replaces an earlier one.
        beam_size: int. K; by default that of the translator's `search`, which the rest is taken from.
        length_penalty: as in `Translator.translate`, with the same default.
        precision: of the weights in the file: `"float32"`; `"float16"`, computing in float32; `"int8"`.
        progress: called with a line about each search that is traced, such as `"search 2 of 8: 24 tokens"`.

    Raises:
        UserError: another precision or backend than these, another beam or length penalty than a search
            can have, a tokenizer that cannot run in TensorFlow's graph, a weight beyond float16, or a folder
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

    save_graph(translator, folder, search, precision, progress)
