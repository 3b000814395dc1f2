"""The tokenizer of OPUS-MT's Marian models, as Keras saves it."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import keras
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.text.marian_pieces import MarianPieces
from kzoo.text.special_tokens import UNKNOWN
from kzoo.text.tokenizers import NO_VOCABULARY

PIECES_FILE = "pieces.json"
MODEL_FILE = "vocabulary.spm"


@keras.saving.register_keras_serializable("kzoo")
class MarianTokenizer(Tokenizer):
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
            none do.
        **kwargs: other arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: a vocabulary without the special tokens, or with a piece twice; an unknown language; a call
            without a vocabulary.
    """

    lowercases = False  # whether detokenized text is in lower case

    def __init__(
        self,
        proto: bytes | None = None,
        pieces: Sequence[str] = (),
        language: str | None = None,
        normalize_punctuation: str | None = None,
        **kwargs,
    ):
        super().__init__(dtype=kwargs.pop("dtype", "int32"), **kwargs)
        self.file_assets = [MODEL_FILE, PIECES_FILE]
        self._options = {"language": language, "normalize_punctuation": normalize_punctuation}
        self._set(proto, pieces)
        self.built = True  # Keras quantizes models of built layers only

    def _set(self, proto: bytes | None, pieces: Sequence[str]):
        self.proto = proto
        self._pieces = None if proto is None else MarianPieces(proto, pieces, **self._options)

    @property
    def pieces(self) -> MarianPieces:
        """The vocabulary and SentencePiece model, which work without Keras."""
        if self._pieces is None:
            raise UserError(NO_VOCABULARY)
        return self._pieces

    @property
    def languages(self) -> list[str]:
        """The codes of the target languages that the vocabulary names."""
        return [] if self._pieces is None else self.pieces.languages

    @property
    def language(self) -> str | None:
        """The target language, whose code is put before texts."""
        return self._options["language"]

    @language.setter
    def language(self, code: str | None):
        self.pieces.language = code
        self._options["language"] = code

    @property
    def normalize_punctuation(self) -> str | None:
        """The language whose Moses rules normalize punctuation; `None`: none do.

        Saved translators keep it. SavedModels do not support it.
        """
        return self._options["normalize_punctuation"]

    @normalize_punctuation.setter
    def normalize_punctuation(self, code: str | None):
        self.pieces.normalize_punctuation = code
        self._options["normalize_punctuation"] = code

    def for_language(self, code: str) -> Self:
        """Return a copy with another `language`."""
        options = {**self._options, "language": code}
        return type(self)(self.proto, self.get_vocabulary(), **options, config_file=self.config_file)

    def call(self, inputs: Sequence[str]) -> list[list[int]]:
        return self.tokenize(inputs)

    def tokenize(self, inputs: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text."""
        return self.pieces(inputs)

    def normalize(self, text: str) -> str:
        """Return a sentence as it is split into subwords."""
        return self.pieces.normalize(text)

    def detokenize(self, inputs: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids, without special tokens."""
        return self.pieces.detokenize(inputs)

    def vocabulary_size(self) -> int:
        """Return V, the four special tokens included."""
        return len(self.pieces.vocabulary)

    def get_vocabulary(self) -> list[str]:
        """Return the pieces in the order of their ids."""
        return list(self.pieces.vocabulary)

    def id_to_token(self, id: int) -> str:
        """Return the piece of an id."""
        return self.pieces.vocabulary[id]

    def token_to_id(self, token: str) -> int:
        """Return the id of a piece."""
        return self.pieces.ids.get(token, UNKNOWN)

    def save_assets(self, dir_path):
        (Path(dir_path) / MODEL_FILE).write_bytes(self.proto)
        text = json.dumps(self.get_vocabulary(), ensure_ascii=False)
        (Path(dir_path) / PIECES_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        pieces = json.loads((Path(dir_path) / PIECES_FILE).read_text(encoding="utf-8"))
        self._set((Path(dir_path) / MODEL_FILE).read_bytes(), pieces)

    def get_config(self):
        return {**super().get_config(), **self._options}  # the vocabulary is an asset
