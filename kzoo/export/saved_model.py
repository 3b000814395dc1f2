"""Exports a translator as a SavedModel, which translates from text to text, with the whole search inside.

Loading one needs only tensorflow and tensorflow_text.
"""

import os

from kzoo.errors import UserError
from kzoo.export_formats import check_precision
from kzoo.files import check_replaceable


def export_saved_model(translator, folder: str | os.PathLike, precision: str = "float32", **search):
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
        precision: of the stored weights: `"float32"`; `"float16"`, with float32 computations; or `"int8"`.
        **search: search settings that replace the translator's, as in `SearchSettings.changed`; K is their
            `beam_size`.

    Raises:
        UserError: another precision, a backend other than TensorFlow, an invalid search setting, a tokenizer
            that cannot run in TensorFlow's graph, a weight too large for float16, or a folder with other
            contents.
    """
    import keras

    check_saved_model(folder, precision, keras.backend.backend())
    search = translator.search.changed(**search)
    from kzoo.export.graph_translator import save_graph  # imports TensorFlow

    save_graph(translator, folder, search, precision)


def check_saved_model(folder: str | os.PathLike, precision: str, backend: str):
    """Raise `UserError` if no SavedModel can be written to a folder, as far as no model is needed to know."""
    if backend != "tensorflow":
        raise UserError(
            f"a SavedModel is written by TensorFlow, not by {backend}: "
            "load the preset with KERAS_BACKEND=tensorflow"
        )
    check_precision(precision)
    check_replaceable(folder, "saved_model.pb", "variables", "assets", "fingerprint.pb")
