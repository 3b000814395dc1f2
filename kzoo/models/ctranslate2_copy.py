"""Converts a translator in memory to CTranslate2, if the format can hold it."""

import tempfile
import threading
from pathlib import Path

import keras
import numpy as np

from kzoo.engine.conversion import convert, other_counts, why_not_held
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.models.backbones import is_quantized
from kzoo.models.preset_files import check_tokenizers


def why_not(translator: keras.Model) -> str | None:
    """Return why CTranslate2's format cannot hold a translator; `None` if it can."""
    backbone, name = translator.backbone, type(translator).__name__
    sides = () if translator.multilingual else (translator.source_tokenizer, translator.target_tokenizer)
    kinds = [type(tokenizer).__name__ for tokenizer in sides if tokenizer is not None]
    if reason := why_not_held(name, type(backbone).__name__, backbone.get_config(), kinds):
        return reason
    if is_quantized(backbone):
        return "the translator is quantized: export the original one with precision='int8'"
    try:
        check_tokenizers(list(sides))
    except UserError as error:
        return str(error)
    if reason := other_counts(backbone.get_config(), [side.vocabulary_size() for side in sides]):
        return reason
    if any(getattr(layer, "lora_enabled", False) for layer in backbone._flatten_layers()):
        return "the translator has LoRA weights: save it as a .keras file, which merges them, and load that"
    return None


class CTranslate2Copy:
    """A translator's CTranslate2 model, converted again when the weights or tokenizers change."""

    def __init__(self):
        self._made_of = self._weights = self._copy = None
        self._lock = threading.Lock()

    def of(self, translator: keras.Model) -> CTranslate2Translator:
        """Return the copy of a translator; `why_not` must return `None` for it."""
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        contents = [(each.proto, each.get_vocabulary()) for each in tokenizers]
        made_of, backbone = (tokenizers, contents), translator.backbone
        arrays = map(keras.ops.convert_to_numpy, backbone.weights)  # one at a time
        with self._lock:
            if made_of != self._made_of or not all(map(np.array_equal, arrays, self._weights)):
                with tempfile.TemporaryDirectory() as folder:
                    preset, model = Path(folder) / "preset", Path(folder) / "model"
                    # Without languages, which only tokenizing needs, and search, which each call passes.
                    bare = type(translator)(backbone, *tokenizers)
                    bare.save_to_preset(preset, "float32")
                    convert(preset, model)
                    self._copy = CTranslate2Translator(preset, model=model)
                # A copy, which takes as much memory as the model: comparing takes half the time of a digest.
                self._made_of, self._weights = made_of, list(map(np.copy, backbone.get_weights()))
            return self._copy
