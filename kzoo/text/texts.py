"""What tokenizers and translators check of texts."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from kzoo.errors import UserError
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import UNKNOWN

if TYPE_CHECKING:  # importing it takes seconds
    from keras_hub.tokenizers import Tokenizer


def check_tokenizer(tokenizer: "Tokenizer | None"):
    """Raise `UserError` for a model without a tokenizer."""
    if tokenizer is None:
        raise UserError(
            "this model has no tokenizers: build it with them, as in pope_tiny(tokenizer) or "
            "attention_bridge_m2m(tokenizers)"
        )


def check_lengths(
    sentences: Sequence[str], readings: Sequence[Reading], limit: int, truncate: bool = False, first: int = 1
):
    """Raise `UserError` for a sentence of more than `limit` tokens, unless `truncate` is true.

    `first` is the number of the first sentence.
    """
    for number, (sentence, reading) in enumerate(zip(sentences, readings, strict=True), first):
        if len(reading.tokens) > limit and not truncate:
            raise UserError(
                f"sentence {number} has {len(reading.tokens):,} subwords, the model reads at most {limit:,}: "
                f"split it, or truncate it ({sentence[:40]!r}…)"
            )


def tokenize_prefixes(tokenizer: "Tokenizer", prefixes: list[str], limit: int) -> list[list[int]]:
    """Return the token ids that translations begin with.

    Raises:
        UserError: a prefix of more than `limit` tokens, or with an unknown character.
    """
    if not any(prefixes):
        return [[] for _ in prefixes]
    tokens = tokenizer(checked_texts(prefixes))
    for text, found in zip(prefixes, tokens, strict=True):
        if UNKNOWN in found:
            raise UserError(f"the prefix {text!r:.80} has a character that the vocabulary lacks")
        if len(found) > limit:
            raise UserError(
                f"the prefix {text[:40]!r}… has {len(found)} subwords, "
                f"but a translation has at most {limit} before its end symbol"
            )
    return tokens


def checked_texts(texts: Iterable[str]) -> list[str]:
    """Return sentences, or a single one, as a list.

    Raises:
        UserError: a sentence that is not text; or a table, whose names of columns would be taken for texts.
    """
    table = isinstance(texts, Mapping | bytes) or hasattr(texts, "columns")
    if table or not isinstance(texts, Iterable):
        raise UserError(
            f"the texts are of type {type(texts).__name__}: pass a list of str, or the column of a table "
            'that has them, such as table["en"]'
        )
    texts = [texts] if isinstance(texts, str) else list(texts)
    for number, text in enumerate(texts, 1):
        if not isinstance(text, str):
            kind = type(text).__name__
            raise UserError(f"row {number - 1} (from 0) of the texts must be a str, not {kind}: {text!r:.40}")
        try:
            text.encode()
        except UnicodeEncodeError:  # JSON can contain "\ud800"
            raise UserError(f"sentence {number} is not text: it has half of a surrogate pair") from None
    return texts
