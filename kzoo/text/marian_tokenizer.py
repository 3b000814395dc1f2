"""The subwords of OPUS-MT's Marian models: SentencePiece's pieces, numbered by a vocabulary of their own."""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Self

import keras
import sentencepiece
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.text.character_tokenizer import SPECIAL
from kzoo.text.sentences import one_line
from kzoo.text.special_tokens import UNKNOWN
from kzoo.text.tokenizers import NO_VOCABULARY

PIECES_FILE = "pieces.json"
MODEL_FILE = "vocabulary.spm"
SPACE = "▁"  # as SentencePiece writes it


@keras.saving.register_keras_serializable("kzoo")
class MarianTokenizer(Tokenizer):
    """SentencePiece's pieces, looked up in a vocabulary that begins with the zoo's special tokens.

    Text is taken as transformers' `MarianTokenizer` takes it: a language's code at its beginning, as in
    `">>fra<< A dog."`, is one token, the rest is split by SentencePiece, and a piece that the vocabulary
    lacks is unknown. Names of special tokens in the text, such as `</s>`, are text here.

    Args:
        proto: bytes of the SentencePiece model. `None` until `load_preset_assets` or a saved model has it.
        pieces: the vocabulary, special tokens first.
        language: code that every text is begun with, if it does not begin with one; `None`: no code.
        normalize_punctuation: code of the language whose Moses rules of punctuation are applied first;
            `None`, the default: none are.
        **kwargs: other arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: a vocabulary without the special tokens, or with a piece twice; a language that it lacks; a
            call without a vocabulary.
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
        self.normalize_punctuation = normalize_punctuation
        self._set(proto, pieces)
        self._language = language
        if proto is not None:
            self.language = language
        self.built = True  # Keras quantizes models of built layers only

    def _set(self, proto: bytes | None, pieces: Sequence[str]):
        self.proto, self._vocabulary = proto, list(pieces)
        self._ids = {piece: token for token, piece in enumerate(pieces)}
        if proto is None:
            return
        if self._vocabulary[: len(SPECIAL)] != [*SPECIAL.values()] or len(self._ids) < len(pieces):
            raise UserError("a Marian vocabulary has each piece once, after <pad>, <unk>, <s> and </s>")
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=proto)

    @property
    def languages(self) -> list[str]:
        """The codes of the languages that the vocabulary names."""
        return [piece[2:-2] for piece in self._vocabulary if piece.startswith(">>") and piece.endswith("<<")]

    @property
    def language(self) -> str | None:
        """The code that texts are begun with."""
        return self._language

    @language.setter
    def language(self, code: str | None):
        if code is not None and code not in self.languages:
            raise UserError(
                f"this vocabulary names {', '.join(self.languages) or 'no languages'}, not {code!r}"
            )
        self._language = code

    def for_language(self, code: str) -> Self:
        """Return the tokenizer with another `language`."""
        return type(self)(
            self.proto, self._vocabulary, code, self.normalize_punctuation, config_file=self.config_file
        )

    def call(self, inputs: Sequence[str]) -> list[list[int]]:
        return self.tokenize(inputs)

    def tokenize(self, inputs: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text."""
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        return [self._tokenized(self.normalize(one_line(text))) for text in inputs]

    def _tokenized(self, text: str) -> list[int]:
        codes = []
        if text.startswith(">>") and (end := text.find("<<")) != -1:
            codes, text = [text[: end + 2]], text[end + 2 :]
        elif self.language and text.strip():
            codes = [f">>{self.language}<<"]
        pieces = self._processor.encode(text, out_type=str)
        return [self._ids.get(piece, UNKNOWN) for piece in (*codes, *pieces)]

    def normalize(self, text: str) -> str:
        """Return a sentence in the form that is split into subwords."""
        if not self.normalize_punctuation or not text:
            return text
        from sacremoses import MosesPunctNormalizer

        return MosesPunctNormalizer(self.normalize_punctuation).normalize(text)

    def detokenize(self, inputs: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids, without special tokens."""
        return [
            "".join(self._vocabulary[token] for token in tokens if token not in SPECIAL)
            .replace(SPACE, " ")
            .strip()
            for tokens in inputs
        ]

    def vocabulary_size(self) -> int:
        """Return V, the four special tokens included."""
        return len(self._vocabulary)

    def get_vocabulary(self) -> list[str]:
        """Return the pieces in the order of their ids."""
        return list(self._vocabulary)

    def id_to_token(self, id: int) -> str:
        """Return the piece of an id."""
        return self._vocabulary[id]

    def token_to_id(self, token: str) -> int:
        """Return the id of a piece."""
        return self._ids.get(token, UNKNOWN)

    def save_assets(self, dir_path):
        (Path(dir_path) / MODEL_FILE).write_bytes(self.proto)
        text = json.dumps(self._vocabulary, ensure_ascii=False)
        (Path(dir_path) / PIECES_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        pieces = json.loads((Path(dir_path) / PIECES_FILE).read_text(encoding="utf-8"))
        self._set((Path(dir_path) / MODEL_FILE).read_bytes(), pieces)

    def get_config(self):
        config = {"language": self.language, "normalize_punctuation": self.normalize_punctuation}
        return {**super().get_config(), **config}  # the vocabulary is an asset
