"""The pieces of a preset's tokenizers, read from its files without Keras."""

import json

from kzoo.hub.preset import Preset, tokenizer_asset
from kzoo.text.pieces import MODEL_FILE, PIECES_FILE, Subwords


def pieces_of(preset: Preset, tokenizer: str) -> list[str]:
    """Return the pieces of a tokenizer's vocabulary in the order of their ids."""
    if (listed := tokenizer_asset(tokenizer, PIECES_FILE)) in preset.files:
        return json.loads(preset.read(listed))
    return Subwords(preset.read(tokenizer_asset(tokenizer, MODEL_FILE))).vocabulary
