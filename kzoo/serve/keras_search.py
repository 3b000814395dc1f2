"""Keras's search for the server: batches of one padded length, in the few shapes that are compiled.

It compiles the usual shapes before the first client.
"""

from collections.abc import Iterator, Sequence

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding import SearchSettings
from kzoo.decoding.search_settings import LENGTHS, padded_length
from kzoo.models import Translator
from kzoo.serve.limits import MAX_BATCH, Direction, read_tokens
from kzoo.text.texts import Hypothesis

# Batches are padded to one of these sizes, fewer than in `translate`: each is compiled for each length, which
# takes XLA 5 s or more.
FEW_ROWS = (1, 4, 8, 16, 32, MAX_BATCH)
# Longer sentences are compiled for when one arrives.
USUAL_LENGTH = 48
# A batch of sentences of 256 subwords has a quarter as many as one of 64: the others wait less for it.
FULL_LENGTH = 64


class KerasSearch:
    """What the server asks of a `Translator`.

    Args:
        translator: of one direction or of many.
        settings: how translations are searched for.
        max_batch: int. Maximum sentences per batch.

    Attributes:
        threads: int. Batches at a time.
    """

    def __init__(self, translator: Translator, settings: SearchSettings, max_batch: int):
        self.translator, self._settings = translator, settings
        self._counts = row_counts(max_batch)
        # As many batches at a time as in `translate`; on JAX, Keras donates the weights' buffers in a call.
        self.threads = 1 if keras.backend.backend() == "jax" else 2

    @property
    def max_length(self) -> int:
        """The most tokens that the model reads or writes, with the end symbol."""
        return self.translator.backbone.max_length

    def sizes(self, key: tuple) -> list[int]:
        """Return the numbers of sentences that the batches of a key are padded to."""
        most = self._counts[-1] * FULL_LENGTH
        return [rows for rows in self._counts if rows == 1 or rows * key[1] <= most]

    def slow(self, key: tuple) -> bool:
        """Return whether a batch is not one of those that are compiled at the start."""
        _, length, begun = key
        return length > USUAL_LENGTH or begun

    def rows(
        self, sentences: list[str], directions: list[Direction], images: Sequence, prefixes: list[str]
    ) -> list[tuple[tuple, tuple]]:
        """Return the key of each sentence's batches, and its row: text, image and prefix.

        Raises:
            UserError: names the first sentence that is too long for the model.
        """
        lengths = padded_lengths(self.translator, sentences, [source for source, _ in directions])
        # Sentences of one padded length make a batch, which is one call of one compiled search.
        keys = zip(directions, lengths, map(bool, prefixes), strict=True)
        return list(zip(keys, zip(sentences, images, prefixes, strict=True), strict=True))

    def search(self, key: tuple, rows: list[tuple]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row of a batch of one direction and one padded length."""
        direction, _, begun = key
        texts, images, prefixes = (list(column) for column in zip(*filled(rows, self._counts), strict=True))
        options = {"images": np.stack(images)} if self.translator.image_shape else {}
        if begun:
            options["prefixes"] = prefixes
        if self.translator.multilingual:
            options |= dict(zip(("source_language", "target_language"), direction, strict=True))
        found = self.translator.n_best(
            texts, **vars(self._settings), threads=1, split_sentences=False, **options
        )
        return found[: len(rows)]

    def usual(self) -> Iterator[tuple[tuple, list[tuple]]]:
        """Yield a batch of each usual shape, as key and rows: searching for them compiles."""
        languages, shape, image = self.translator.languages, self.translator.image_shape, None
        direction = languages[0], languages[-1]
        if shape is not None:
            image = np.zeros(shape, "uint8" if len(shape) == 3 else "float32")
        texts = usual_texts(_tokenizer(self.translator, direction[0]), self.max_length)
        for rows in self._counts:  # those needed first at the front
            for text in texts:
                yield (direction, None, False), [(text, image, "")] * rows


def row_counts(max_batch: int) -> list[int]:
    """Return the numbers of sentences that batches of at most `max_batch` are padded to."""
    return [*(rows for rows in FEW_ROWS if rows < max_batch), max_batch]


def filled(rows: list, counts: list[int]) -> list:
    """Return rows padded with copies of the first to the next of `counts`."""
    count = next(count for count in counts if count >= len(rows))
    return rows + rows[:1] * (count - len(rows))


def padded_lengths(translator: Translator, texts: list[str], languages: list[str | None]) -> list[int]:
    """Return the length that each text, in its language, is padded to; 0 for a text without a token.

    Raises:
        UserError: names the first text that is too long for the model.
    """
    most = translator.backbone.max_length

    def tokenize(some: list[tuple[str, str | None]]) -> list[list[int]]:
        tokens = [None] * len(some)
        for language in {language for _, language in some}:
            mine = [i for i, (_, code) in enumerate(some) if code == language]
            found = _tokenizer(translator, language)([some[i][0] for i in mine])
            for i, sentence in zip(mine, found, strict=True):
                tokens[i] = sentence
        return tokens

    tokens = read_tokens(tokenize, list(zip(texts, languages, strict=True)), most)
    return [padded_length(len(sentence), most) if sentence else 0 for sentence in tokens]


def _tokenizer(translator: Translator, language: str | None) -> Tokenizer:
    """Return the tokenizer of a source language."""
    return translator.tokenizers[language] if translator.multilingual else translator.source_tokenizer


def usual_texts(tokenizer: Tokenizer, max_length: int) -> list[str]:
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
