"""Tokens without Keras: SentencePiece's subwords, those of OPUS-MT and of many languages, characters."""

from collections.abc import Iterable, Sequence

import sentencepiece

from kzoo.errors import UserError
from kzoo.text.preparation import prepare
from kzoo.text.texts import checked_texts
from kzoo.text.vocabulary import SPECIAL, UNKNOWN

SPACE = "▁"  # as SentencePiece writes it
MODEL_FILE = "vocabulary.spm"  # of a tokenizer
PIECES_FILE = "pieces.json"  # also, if it has a vocabulary


class LanguageNames:
    """What a translator asks a tokenizer about languages. By default, the vocabulary names none.

    Attributes:
        languages: the codes of those that the vocabulary names.
        codes_in_text: those that a text may choose itself, as `>>fra<< A dog.` does.
        names: which language of a direction the first token names, `"source"` or `"target"`; `None`: neither.
    """

    languages: Sequence[str] = ()
    codes_in_text: Sequence[str] = ()
    names: str | None = None

    def language_tokens(self, language: str | None) -> list[int]:
        """Return the tokens that translations into a language begin with."""
        return []


class Subwords(LanguageNames):
    """A SentencePiece model with the methods of a `SubwordTokenizer`."""

    def __init__(self, proto: bytes):
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=proto)

    def __call__(self, texts: list[str]) -> list[list[int]]:
        # One by one: for a list, SentencePiece starts threads, which takes longer than a sentence.
        return [self._processor.encode(prepare(text, self._processor.normalize)) for text in texts]

    def detokenize(self, rows: list[list[int]]) -> list[str]:
        return [self._processor.decode(row) for row in rows]

    @property
    def vocabulary(self) -> list[str]:
        """The pieces in the order of their ids."""
        return self._processor.id_to_piece(list(range(self._processor.vocab_size())))


class MarianPieces(LanguageNames):
    """SentencePiece's pieces, looked up in a vocabulary. See `MarianTokenizer` for arguments and errors."""

    names = "target"

    def __init__(
        self,
        proto: bytes,
        vocabulary: Sequence[str],
        language: str | None = None,
        normalize_punctuation: str | None = None,
    ):
        self.language, self.normalize_punctuation = language, normalize_punctuation
        self.set_vocabulary(proto, vocabulary)

    def set_vocabulary(self, proto: bytes, vocabulary: Sequence[str]):
        """Replace the SentencePiece model and the pieces."""
        self.proto, self.vocabulary = proto, list(vocabulary)
        self.ids = {piece: token for token, piece in enumerate(vocabulary)}
        if self.vocabulary[: len(SPECIAL)] != [*SPECIAL.values()] or len(self.ids) < len(vocabulary):
            raise UserError("a Marian vocabulary has each piece once, after <pad>, <unk>, <s> and </s>")
        # The codes of the target languages that the vocabulary names.
        codes = (piece for piece in vocabulary if piece.startswith(">>") and piece.endswith("<<"))
        self.languages = [code[2:-2] for code in codes]
        self._processor = sentencepiece.SentencePieceProcessor(model_proto=proto)

    @property
    def codes_in_text(self) -> list[str]:
        return self.languages

    def tokenize(self, inputs: Sequence[str], language: str | None = None) -> list[list[int]]:
        """Return the token ids of each text for translation into `language`, by default the tokenizer's.

        Raises:
            UserError: the vocabulary does not name the language.
        """
        language = language or self.language
        codes = [f">>{language}<<"] if language else []
        if not self.ids.keys() >= set(codes):
            known = ", ".join(self.languages) or "no languages"
            raise UserError(f"this vocabulary knows {known}, not {language!r}")
        return [
            self._tokens(self.normalize(prepare(text, self._processor.normalize)), codes)
            for text in checked_texts(inputs)
        ]

    __call__ = tokenize

    def _tokens(self, text: str, codes: list[str]) -> list[int]:
        if text.startswith(">>") and (end := text.find("<<")) != -1:
            codes, text = [text[: end + 2]], text[end + 2 :]
        pieces = self._processor.encode(text, out_type=str)
        return [self.ids.get(piece, UNKNOWN) for piece in (*codes, *pieces)] if pieces else []

    def normalize(self, text: str) -> str:
        """Return a sentence in the form that is split into subwords."""
        if not self.normalize_punctuation or not text:
            return text
        from sacremoses import MosesPunctNormalizer

        return MosesPunctNormalizer(self.normalize_punctuation).normalize(text)

    def detokenize(self, inputs: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids, without special tokens."""
        rows = ([self.vocabulary[token] for token in row if token not in SPECIAL] for row in inputs)
        # SentencePiece also joins bytes, and returns pieces that it does not know unchanged.
        return [self._processor.decode(row).replace(SPACE, " ").strip() for row in rows]


class LanguagePieces(MarianPieces):
    """Pieces after a language's token. See `LanguageTokenizer` for arguments and errors."""

    codes_in_text = ()

    def __init__(
        self,
        proto: bytes,
        vocabulary: Sequence[str],
        languages: dict[str, str],
        names: str | None,
        language: str | None = None,
    ):
        self.tokens, self.names = dict(languages), names
        super().__init__(proto, vocabulary, language)

    def set_vocabulary(self, proto: bytes, vocabulary: Sequence[str]):
        super().set_vocabulary(proto, vocabulary)
        if missing := [token for token in self.tokens.values() if token not in self.ids]:
            raise UserError(f"the vocabulary lacks the language's token {missing[0]!r:.80}")
        self.languages = list(self.tokens)
        size = self._processor.vocab_size()
        spelled = set(self._processor.id_to_piece(list(range(size))))
        self.silent = {token for token, piece in enumerate(self.vocabulary) if piece not in spelled}

    def language_tokens(self, language: str | None) -> list[int]:
        """Return the tokens that texts of a language begin with: its own; none without a language.

        Raises:
            UserError: the vocabulary does not name the language.
        """
        if self.names is None or not language:
            return []
        if language not in self.tokens:
            raise UserError(f"this vocabulary knows {len(self.tokens)} languages, not {language!r:.40}")
        return [self.ids[self.tokens[language]]]

    def tokenize(self, inputs: Sequence[str], language: str | None = None) -> list[list[int]]:
        first = self.language_tokens(language or self.language)
        rows = []
        for text in checked_texts(inputs):
            pieces = self._processor.encode(prepare(text, self._processor.normalize), out_type=str)
            rows.append([*first, *(self.ids.get(piece, UNKNOWN) for piece in pieces)] if pieces else [])
        return rows

    __call__ = tokenize

    def detokenize(self, inputs: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids, without special tokens and languages'."""
        return super().detokenize([token for token in row if token not in self.silent] for row in inputs)


def character_tokens(ids: dict[str, int], texts: Iterable[str]) -> list[list[int]]:
    """Return the ids of each text's characters; none for a text of spaces."""
    lines = map(prepare, texts)
    return [[ids.get(character, UNKNOWN) for character in line] if line.strip() else [] for line in lines]
