"""The pieces of a preset's tokenizers, read from its files without Keras."""

import json

from kzoo.hub.preset import Preset, tokenizer_asset
from kzoo.text.pieces import MODEL_FILE, PIECES_FILE, Subwords


def pieces_of(preset: Preset) -> list[list[str]]:
    """Return the pieces of each tokenizer's vocabulary, in the order of their ids.

    Tokenizers with equal files, as those of a joint vocabulary, have the same list: it is read once.
    """
    assets = [
        {name: tokenizer_asset(tokenizer, name) for name in (PIECES_FILE, MODEL_FILE)}
        for tokenizer in preset.settings["tokenizers"]
    ]
    files = [asset[PIECES_FILE if asset[PIECES_FILE] in preset.files else MODEL_FILE] for asset in assets]
    equal = {preset.files.get(file): file for file in files}
    pieces = {digest: _pieces(file, preset.read(file)) for digest, file in equal.items()}
    return [pieces[preset.files[file]] for file in files]


def _pieces(file: str, content: bytes) -> list[str]:
    return json.loads(content) if file.endswith(PIECES_FILE) else Subwords(content).vocabulary
