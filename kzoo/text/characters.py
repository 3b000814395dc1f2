"""Text as single characters, for glyph models."""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import keras

from kzoo.errors import UserError
from kzoo.text.pieces import character_tokens
from kzoo.text.preparation import prepare
from kzoo.text.texts import checked_texts
from kzoo.text.tokenizers import NO_VOCABULARY, ListedTokens
from kzoo.text.vocabulary import SPECIAL, UNKNOWN

CHARACTERS_FILE = "characters.json"


@keras.saving.register_keras_serializable("kzoo")
class CharacterTokenizer(ListedTokens):
    """One token per character, after the zoo's special tokens: padding 0, unknown 1, start 2, end 3.

    Args:
        characters: the vocabulary without special tokens, as `learn_characters` returns it. `None` until
            `load_preset_assets` or a saved model provides it; the configuration leaves it out.
        **kwargs: other arguments of `keras_hub.tokenizers.Tokenizer`.

    Call arguments:
        inputs: list of `str`.
        drawn: characters outside the vocabulary that the model reads from their pixels. The id of one is V
            plus its code point.

    Returns:
        A list of lists of int, without start and end.

    Raises:
        UserError: an entry that is not one character, or occurs twice; a call without a vocabulary.

    Example:

    >>> tokenizer = CharacterTokenizer(["我", "的"])
    >>> tokenizer(["我的书"])
    [[4, 5, 1]]
    >>> tokenizer.detokenize([[5, 4]])
    ['的我']
    """

    def __init__(self, characters: Sequence[str] | None = None, **kwargs):
        super().__init__(**kwargs)
        self.file_assets = [CHARACTERS_FILE]
        self._set_characters(characters or ())

    def _set_characters(self, characters: Sequence[str]):
        self.vocabulary = [*SPECIAL.values(), *characters]
        self.ids = {character: i for i, character in enumerate(self.vocabulary)}
        for number, character in enumerate(characters, len(SPECIAL)):
            if len(character) != 1 or self.ids[character] != number:
                raise UserError(f"a vocabulary has single characters, each once: {character!r} does not fit")

    def call(self, inputs: Sequence[str], drawn: str = "") -> list[list[int]]:
        return self.tokenize(inputs, drawn)

    def tokenize(self, inputs: Sequence[str], drawn: str = "") -> list[list[int]]:
        """Return the character ids of each text; none for a text of spaces."""
        if len(self.vocabulary) == len(SPECIAL):
            raise UserError(NO_VOCABULARY)
        more = {character: len(self.vocabulary) + ord(character) for character in drawn}
        return character_tokens(self.ids | more if more else self.ids, checked_texts(inputs))

    def id_to_token(self, id: int) -> str:
        """Return the token of an id."""
        beyond = id - len(self.vocabulary)
        return self.vocabulary[id] if beyond < 0 else chr(beyond)

    def detokenize(self, inputs: Iterable[Iterable[int]]) -> list[str]:
        """Return the texts of lists of ids: U+FFFD for unknown, nothing for the other special tokens."""
        written = ["" if i in SPECIAL else token for i, token in enumerate(self.vocabulary)]
        written[UNKNOWN] = "\ufffd"
        return ["".join(written[i] for i in numbers) for numbers in inputs]

    def save_assets(self, dir_path):
        characters = self.vocabulary[len(SPECIAL) :]
        text = json.dumps("".join(characters), ensure_ascii=False)
        (Path(dir_path) / CHARACTERS_FILE).write_text(text, encoding="utf-8")

    def load_assets(self, dir_path):
        self._set_characters(json.loads((Path(dir_path) / CHARACTERS_FILE).read_text(encoding="utf-8")))

    def get_config(self):
        return {**super().get_config(), "characters": None}  # an asset, like keras-hub's vocabularies


def learn_characters(sentences: Iterable[str], vocabulary_size: int | None = None) -> list[str]:
    """Return the characters of sentences for `CharacterTokenizer`, the most frequent first.

    Args:
        sentences: the text.
        vocabulary_size: int. Maximum vocabulary size, the four special tokens included. `None`, the default:
            all characters.

    Raises:
        UserError: the text is empty, or `vocabulary_size` leaves no room for characters.

    Example:

    >>> learn_characters(["他的书", "我的书的"])
    ['的', '书', '他', '我']
    """
    counts = Counter(character for sentence in sentences for character in prepare(sentence))
    if not counts:
        raise UserError("cannot learn characters: the text is empty")
    if vocabulary_size is not None and vocabulary_size <= len(SPECIAL):
        raise UserError(
            f"vocabulary_size={vocabulary_size} is too small: it includes the {len(SPECIAL)} special tokens"
        )
    frequent = sorted(counts, key=lambda character: (-counts[character], character))
    return frequent if vocabulary_size is None else frequent[: vocabulary_size - len(SPECIAL)]
