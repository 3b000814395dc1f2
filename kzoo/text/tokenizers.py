"""Tokenizers that Keras can save: SentencePiece's subwords, and the pieces of models of other zoos."""

import json
import os
from collections.abc import Sequence
from pathlib import Path

import keras
import sentencepiece
from keras_hub.tokenizers import SentencePieceTokenizer, Tokenizer

from kzoo.errors import UserError
from kzoo.text.pieces import MODEL_FILE, PIECES_FILE, LanguageNames, LanguagePieces, MarianPieces
from kzoo.text.preparation import prepare
from kzoo.text.vocabulary import END, PAD, START, UNKNOWN

NO_VOCABULARY = (
    "the tokenizer has no vocabulary, because configurations leave it out: "
    "load the model from a file or a preset, or build it with a tokenizer"
)
UNTRACKED = ("vocabulary", "ids", "silent")  # large attributes


@keras.saving.register_keras_serializable("kzoo")
class SubwordTokenizer(LanguageNames, SentencePieceTokenizer):
    """SentencePiece subwords with the zoo's special tokens: padding 0, unknown 1, start 2, end 3.

    It runs on plain sentencepiece or, if TensorFlow is installed, in the graph with tensorflow-text.

    Args:
        proto: bytes or path of a SentencePiece model with these special tokens. `None` until
            `load_preset_assets` or a saved model provides it; the configuration leaves it out.
        **kwargs: other arguments of `keras_hub.tokenizers.SentencePieceTokenizer`, except `add_bos`,
            `add_eos` and `sequence_length`: kzoo adds start, end and padding itself.

    Call arguments:
        inputs: list of `str`.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: a SentencePiece model with other special tokens; a call without a vocabulary; one of the
            excepted arguments.

    Example:

    >>> tokenizer = SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, vocabulary_size=20))
    >>> tokenizer.detokenize(tokenizer(["a man"]))
    ['a man']
    """

    lowercases = False  # whether detokenized text is in lower case

    def __init__(self, proto=None, **kwargs):
        for name in ("add_bos", "add_eos", "sequence_length"):
            if kwargs.get(name):
                raise UserError(f"leave out {name}={kwargs[name]!r}: kzoo adds start, end and padding itself")
        super().__init__(proto, **kwargs)

    def set_proto(self, proto):
        super().set_proto(os.fspath(proto) if isinstance(proto, os.PathLike) else proto)
        self.built = True  # Keras quantizes only models whose layers are built
        if self.proto is not None:
            processor = self.processor = sentencepiece.SentencePieceProcessor(model_proto=self.proto)
            ids = (processor.pad_id(), processor.unk_id(), processor.bos_id(), processor.eos_id())
            if ids != (PAD, UNKNOWN, START, END):
                raise UserError(
                    f"a kzoo tokenizer has padding, unknown, start and end at {(PAD, UNKNOWN, START, END)}; "
                    f"this SentencePiece model has them at {ids}: train one with kzoo.text.train_subwords"
                )

    def tokenize(self, inputs):
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        # keras-hub also accepts tensors and bytes.
        normalize = self.processor.normalize
        lines = keras.tree.map_structure(lambda x: prepare(x, normalize) if isinstance(x, str) else x, inputs)
        return super().tokenize(lines)

    def save_assets(self, dir_path):
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        super().save_assets(dir_path)

    def normalize(self, text: str) -> str:
        """Return a sentence in the form that is split into subwords: here, unchanged."""
        return text


class ListedTokens(LanguageNames, Tokenizer):
    """Base class of tokenizers whose vocabulary is a list, with each token's id in the dict `ids`."""

    lowercases = False  # whether detokenized text is in lower case

    def __init__(self, **kwargs):
        super().__init__(dtype=kwargs.pop("dtype", "int32"), **kwargs)
        self.vocabulary, self.ids = [], {}
        self.built = True  # Keras quantizes only models whose layers are built

    def __setattr__(self, name, value):
        if name in UNTRACKED:  # Keras would wrap each entry: for 128,000 pieces, 5 s
            object.__setattr__(self, name, value)
        else:
            super().__setattr__(name, value)

    def vocabulary_size(self) -> int:
        """Return V, the four special tokens included."""
        return len(self.vocabulary)

    def get_vocabulary(self) -> list[str]:
        """Return the tokens in the order of their ids; `render_glyphs` takes this list."""
        return list(self.vocabulary)

    def id_to_token(self, id: int) -> str:
        """Return the token of an id."""
        return self.vocabulary[id]

    def token_to_id(self, token: str) -> int:
        """Return the id of a token."""
        return self.ids.get(token, UNKNOWN)


@keras.saving.register_keras_serializable("kzoo")
class MarianTokenizer(MarianPieces, ListedTokens):
    """SentencePiece pieces, looked up in a vocabulary that begins with kzoo's special tokens.

    It tokenizes as transformers' `MarianTokenizer` does: a language code at the beginning of a text, as in
    `">>fra<< A dog."`, is one token; SentencePiece splits the rest; a piece that the vocabulary lacks is
    unknown. Unlike there, names of special tokens in a text, such as `</s>`, are plain text.

    Args:
        proto: bytes of the SentencePiece model. `None` until `load_preset_assets` or a saved model provides
            it.
        pieces: the vocabulary, special tokens first.
        language: code of the target language, put before texts that do not begin with one; `None`: no code.
        normalize_punctuation: language whose Moses rules normalize punctuation first. Defaults to `None`: no
            normalization. Saved translators keep it. SavedModels do not support it.
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
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        (Path(dir_path) / MODEL_FILE).write_bytes(self.proto)
        text = json.dumps(self.get_vocabulary(), ensure_ascii=False)
        (Path(dir_path) / PIECES_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        pieces = json.loads((Path(dir_path) / PIECES_FILE).read_text(encoding="utf-8"))
        self.set_vocabulary((Path(dir_path) / MODEL_FILE).read_bytes(), pieces)

    def get_config(self):
        options = {"language": self.language, "normalize_punctuation": self.normalize_punctuation}
        return {**super().get_config(), **options}  # the vocabulary is an asset


@keras.saving.register_keras_serializable("kzoo")
class LanguageTokenizer(LanguagePieces, MarianTokenizer):
    """SentencePiece pieces after the token of a language, as in M2M-100, NLLB-200 and SMaLL-100.

    A vocabulary maps pieces to ids as in `MarianTokenizer`. Names of special tokens in a text, and those of
    languages, are plain text.

    Args:
        proto: bytes of the SentencePiece model. `None` until `load_preset_assets` or a saved model provides
            it.
        pieces: the vocabulary, special tokens first.
        languages: each language's token by its code, such as `{"fr": "__fr__"}`.
        names: which language of a direction the token names: `"source"`, `"target"`, or `None`: texts begin
            with no token.
        language: code of the language of texts, if a call names none; `None`: then texts begin with no token.
        **kwargs: other arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: list of `str`.
        language: code of the language.

    Returns:
        A list of lists of int, without start and end; nothing for a text of spaces.

    Raises:
        UserError: as for `MarianTokenizer`; a language without a token in the vocabulary.
    """

    def __init__(
        self,
        proto: bytes | None = None,
        pieces: Sequence[str] = (),
        languages: dict[str, str] | None = None,
        names: str | None = None,
        language: str | None = None,
        **kwargs,
    ):
        if names not in ("source", "target", None):
            raise UserError(f"names must be source, target or None, not {names!r:.80}")
        self.tokens, self.names = dict(languages or {}), names
        MarianTokenizer.__init__(self, proto, pieces, language, **kwargs)

    def tokenize(self, inputs: Sequence[str], language: str | None = None) -> list[list[int]]:
        if self.proto is None:
            raise UserError(NO_VOCABULARY)
        return LanguagePieces.tokenize(self, inputs, language)

    __call__ = tokenize

    def get_config(self):
        config = super().get_config()
        del config["normalize_punctuation"]
        return {**config, "languages": self.tokens, "names": self.names}
