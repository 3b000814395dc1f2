"""The subwords of OPUS-MT models, without Keras."""

import copy
from collections.abc import Iterable, Sequence
from typing import Self

import sentencepiece

from kzoo.errors import UserError
from kzoo.text.sentences import one_line
from kzoo.text.special_tokens import SPECIAL, UNKNOWN

SPACE = "▁"  # as SentencePiece writes it


class MarianPieces:
    """SentencePiece's pieces, looked up in a vocabulary that begins with the zoo's special tokens.

    Args:
        proto: bytes of the SentencePiece model.
        vocabulary: the pieces in the order of their ids, special tokens first.
        language: code of the target language, put before texts that do not begin with one; `None`: no code.
        normalize_punctuation: language whose Moses rules normalize punctuation first; `None`: none do.

    Raises:
        UserError: a vocabulary without the special tokens, or with a piece twice; an unknown language.
    """

    def __init__(
        self,
        proto: bytes,
        vocabulary: Sequence[str],
        language: str | None = None,
        normalize_punctuation: str | None = None,
    ):
        self.vocabulary = list(vocabulary)
        self.ids = {piece: token for token, piece in enumerate(vocabulary)}
        if self.vocabulary[: len(SPECIAL)] != [*SPECIAL.values()] or len(self.ids) < len(vocabulary):
            raise UserError("a Marian vocabulary has each piece once, after <pad>, <unk>, <s> and </s>")
        self.normalize_punctuation = normalize_punctuation
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=proto)
        self.language = language

    @property
    def languages(self) -> list[str]:
        """The codes of the target languages that the vocabulary names."""
        return [piece[2:-2] for piece in self.vocabulary if piece.startswith(">>") and piece.endswith("<<")]

    @property
    def language(self) -> str | None:
        """The target language, whose code is put before texts."""
        return self._language

    @language.setter
    def language(self, code: str | None):
        if code is not None and code not in self.languages:
            known = ", ".join(self.languages) or "no languages"
            raise UserError(f"this vocabulary knows {known}, not {code!r}")
        self._language = code

    def for_language(self, code: str) -> Self:
        """Return a copy with another `language`."""
        other = copy.copy(self)
        other.language = code
        return other

    def __call__(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text."""
        return [self._tokens(self.normalize(one_line(text))) for text in texts]

    def _tokens(self, text: str) -> list[int]:
        codes = []
        if text.startswith(">>") and (end := text.find("<<")) != -1:
            codes, text = [text[: end + 2]], text[end + 2 :]
        elif self.language and text.strip():
            codes = [f">>{self.language}<<"]
        pieces = self._processor.encode(text, out_type=str)
        return [self.ids.get(piece, UNKNOWN) for piece in (*codes, *pieces)]

    def normalize(self, text: str) -> str:
        """Return a sentence as it is split into subwords."""
        if not self.normalize_punctuation or not text:
            return text
        from sacremoses import MosesPunctNormalizer

        return MosesPunctNormalizer(self.normalize_punctuation).normalize(text)

    def detokenize(self, rows: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids, without special tokens."""
        texts = ("".join(self.vocabulary[token] for token in row if token not in SPECIAL) for row in rows)
        return [text.replace(SPACE, " ").strip() for text in texts]
