"""Converts a translator in memory to CTranslate2."""

import hashlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import keras

from kzoo.engine.conversion import convert
from kzoo.engine.translator import CTranslate2Translator

if TYPE_CHECKING:
    from kzoo.models.translator import Translator


class CTranslate2Copy:
    """A translator's CTranslate2 model, converted again when the weights or tokenizers change."""

    def __init__(self):
        self._made_of = self._copy = None

    def of(self, translator: "Translator") -> CTranslate2Translator:
        """Return the copy of a translator for which `kzoo.export.formats.why_not` has no objection."""
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        made_of = _digest(translator.backbone.weights), *map(id, tokenizers)
        if made_of != self._made_of:
            with tempfile.TemporaryDirectory() as folder:
                preset, model = Path(folder) / "preset", Path(folder) / "model"
                translator.save_to_preset(preset, "float32")
                convert(preset, model)
                self._copy = CTranslate2Translator(preset, model=model)
            # Every call gives the translator's languages, which may have changed.
            self._copy.source_language = self._copy.target_language = None
            self._made_of = made_of
        return self._copy


def _digest(weights: list) -> str:
    found = hashlib.sha256()
    for weight in weights:
        found.update(keras.ops.convert_to_numpy(weight).tobytes())
    return found.hexdigest()
