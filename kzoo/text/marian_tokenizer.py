"""The tokenizer of OPUS-MT's Marian models, as Keras saves it."""

import json
from collections.abc import Sequence
from pathlib import Path

import keras

from kzoo.errors import UserError
from kzoo.text.marian_pieces import MarianPieces
from kzoo.text.tokenizers import NO_VOCABULARY, ListedTokens

PIECES_FILE = "pieces.json"
MODEL_FILE = "vocabulary.spm"


@keras.saving.register_keras_serializable("kzoo")
class MarianTokenizer(MarianPieces, ListedTokens):
    """SentencePiece pieces, looked up in a vocabulary that begins with kzoo's special tokens.

    It tokenizes as transformers' `MarianTokenizer` does: a language code at the beginning of a text, as in
    `">>fra<< A dog."`, is one token; SentencePiece splits the rest; a piece that the vocabulary lacks is
    unknown. In contrast to it, names of special tokens in a text, such as `</s>`, are plain text.

    Args:
        proto: bytes of the SentencePiece model. `None` until `load_preset_assets` or a saved model provides
            it.
        pieces: the vocabulary, special tokens first.
        language: code of the target language, put before texts that do not begin with one; `None`: no code.
        normalize_punctuation: language whose Moses rules normalize punctuation first; `None`, the default:
            none do. Saved translators keep it. SavedModels do not support it.
        **kwargs: other arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: a vocabulary without the special tokens, or with a piece twice; a call without a
            vocabulary, or with a language that it does not name.
    """

    def __init__(
        self,
        proto: bytes | None = None,
        pieces: Sequence[str] = (),
        language: str | None = None,
        normalize_punctuation: str | None = None,
        **kwargs,
    ):
        ListedTokens.__init__(self, **kwargs)
        self.file_assets = [MODEL_FILE, PIECES_FILE]
        self.language, self.normalize_punctuation = language, normalize_punctuation
        self.proto = None
        if proto is not None:
            self.set_vocabulary(proto, pieces)

    def tokenize(self, inputs: Sequence[str], language: str | None = None) -> list[list[int]]:
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        return super().tokenize(inputs, language)

    __call__ = tokenize

    def save_assets(self, dir_path):
        (Path(dir_path) / MODEL_FILE).write_bytes(self.proto)
        text = json.dumps(self.get_vocabulary(), ensure_ascii=False)
        (Path(dir_path) / PIECES_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        pieces = json.loads((Path(dir_path) / PIECES_FILE).read_text(encoding="utf-8"))
        self.set_vocabulary((Path(dir_path) / MODEL_FILE).read_bytes(), pieces)

    def get_config(self):
        options = {"language": self.language, "normalize_punctuation": self.normalize_punctuation}
        return {**super().get_config(), **options}  # the vocabulary is an asset
