"""The shapes of a server's batches, and batches that compile the usual ones before the first client."""

from collections.abc import Iterator

import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding.search_settings import LENGTHS

# Batches are padded to one of these sizes, fewer than in `translate`: each is compiled for each length, which
# takes XLA 5 s or more.
FEW_ROWS = (1, 4, 8, 16, 32, 64)
# Longer sentences are compiled for when one arrives, and others may have to wait for that.
USUAL_LENGTH = 48


def row_counts(max_batch: int) -> list[int]:
    """Return the numbers of sentences that batches of at most `max_batch` are padded to."""
    return [*(rows for rows in FEW_ROWS if rows < max_batch), max_batch]


def filled(rows: list, counts: list[int]) -> list:
    """Return rows padded with copies of the first to the next of `counts`."""
    count = next(count for count in counts if count >= len(rows))
    return rows + rows[:1] * (count - len(rows))


def warm_up_rows(
    tokenizer: Tokenizer, max_length: int, counts: list[int], image_shape: tuple[int, ...] | None
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


def usual_texts(tokenizer: Tokenizer, max_length: int) -> list[str]:
    """Return a text of each padded length up to the usual one."""
    candidates = [" ".join("a" * count) for count in range(1, min(USUAL_LENGTH, max_length))]
    counts = [len(words) for words in tokenizer(candidates)] if candidates else []
    texts, shorter = [], 1
    for length in (n for n in LENGTHS if n <= USUAL_LENGTH):
        length = min(length, max_length)
        fitting = [text for text, count in zip(candidates, counts, strict=True) if shorter <= count < length]
        texts += fitting[-1:]
        shorter = length
    return texts
