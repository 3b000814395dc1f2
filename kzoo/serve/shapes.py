"""The shapes of a server's batches, and batches that compile the usual ones before the first client."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from kzoo.decoding.search_settings import LENGTHS, padded_length
from kzoo.errors import UserError

if TYPE_CHECKING:  # which takes seconds to import
    from keras_hub.tokenizers import Tokenizer

    from kzoo.models import Translator

# Batches are padded to one of these sizes, fewer than in `translate`: each is compiled for each length, which
# takes XLA 5 s or more.
FEW_ROWS = (1, 4, 8, 16, 32, 64)
# Longer sentences are compiled for when one arrives.
USUAL_LENGTH = 48
# A batch of sentences of 256 subwords has a quarter as many as one of 64: the others wait less for it.
FULL_LENGTH = 64
# Texts tokenized before their lengths are checked: a text within the limit on characters can have tens of
# thousands of subwords, and 256 of them took seconds. Each call of a tokenizer costs half a millisecond.
TOGETHER = 16


def row_counts(max_batch: int) -> list[int]:
    """Return the numbers of sentences that batches of at most `max_batch` are padded to."""
    return [*(rows for rows in FEW_ROWS if rows < max_batch), max_batch]


def rows_of_length(length: int, counts: list[int]) -> list[int]:
    """Return those of `counts` that batches of sentences padded to `length` may have."""
    return [rows for rows in counts if rows == 1 or rows * length <= counts[-1] * FULL_LENGTH]


def filled(rows: list, counts: list[int]) -> list:
    """Return rows padded with copies of the first to the next of `counts`."""
    count = next(count for count in counts if count >= len(rows))
    return rows + rows[:1] * (count - len(rows))


def padded_lengths(translator: "Translator", texts: list[str], languages: list[str | None]) -> list[int]:
    """Return the length that each text, in its language, is padded to; 0 for a text without a token.

    Raises:
        UserError: as for `read_tokens`.
    """
    most = translator.backbone.max_length
    tokens = read_tokens(
        lambda some: _tokenized(translator, *map(list, zip(*some, strict=True))),
        list(zip(texts, languages, strict=True)),
        most,
    )
    return [padded_length(len(sentence), most) if sentence else 0 for sentence in tokens]


def read_tokens(tokenizer: Callable, texts: list, most: int) -> list[list[int]]:
    """Return the token ids of each text.

    A SavedModel silently cuts sentences that are too long for its model; a server can report them.

    Args:
        tokenizer: function of a list of texts.
        texts: list.
        most: int. Maximum tokens that the model can read, with the end symbol.

    Raises:
        UserError: names the first sentence that is too long for the model.
    """
    tokens = []
    for start in range(0, len(texts), TOGETHER):
        for sentence in tokenizer(texts[start : start + TOGETHER]):
            tokens.append(sentence)
            if len(sentence) >= most:
                raise UserError(
                    f"sentence {len(tokens)} has {len(sentence):,} subwords, the model reads at most "
                    f"{most - 1}: split it"
                )
    return tokens


def _tokenized(translator, texts: list[str], languages: list[str | None]) -> list[list[int]]:
    tokens = [None] * len(texts)
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        found = tokenizer_of(translator, language)([texts[i] for i in mine])
        for i, sentence in zip(mine, found, strict=True):
            tokens[i] = sentence
    return tokens


def tokenizer_of(translator: "Translator", language: str | None) -> "Tokenizer":
    """Return the tokenizer of a source language; `None` means the only one."""
    return translator.source_tokenizer if language is None else translator.tokenizers[language]


def warm_up_rows(
    tokenizer: "Tokenizer", max_length: int, counts: list[int], image_shape: tuple[int, ...] | None
) -> Iterator[list[tuple]]:
    """Yield batches of text, image and no prefix, one of each usual shape, those needed first at the front.

    Args:
        tokenizer: the source language's.
        max_length: int. Maximum tokens that the model can read, with the end symbol.
        counts: the numbers of sentences that batches are padded to.
        image_shape: shape of a sentence's image.
    """
    image = None
    if image_shape is not None:
        image = np.zeros(image_shape, "uint8" if len(image_shape) == 3 else "float32")
    texts = usual_texts(tokenizer, max_length)
    for rows in counts:
        for text in texts:
            yield [(text, image, "")] * rows


def usual_texts(tokenizer: "Tokenizer", max_length: int) -> list[str]:
    """Return a text of each padded length up to the usual one."""
    candidates = [" ".join("a" * count) for count in range(1, min(USUAL_LENGTH, max_length))]
    counts = [len(tokens) for tokens in tokenizer(candidates)] if candidates else []
    texts, shorter = [], 1
    for length in (n for n in LENGTHS if n <= USUAL_LENGTH):
        length = min(length, max_length)
        fitting = [text for text, count in zip(candidates, counts, strict=True) if shorter <= count < length]
        texts += fitting[-1:]
        shorter = length
    return texts
