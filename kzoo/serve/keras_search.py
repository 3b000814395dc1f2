"""Keras's search for the server: batches of one padded length, in the few shapes that are compiled."""

from collections.abc import Iterator, Sequence

import keras
import numpy as np

from kzoo.decoding import SearchSettings
from kzoo.models import Translator
from kzoo.serve import shapes
from kzoo.serve.shapes import filled, padded_lengths, row_counts, rows_of_length, tokenizer_of, warm_up_rows
from kzoo.text.texts import Hypothesis

Direction = tuple[str | None, str | None]


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
        return rows_of_length(key[1], self._counts)

    def slow(self, key: tuple) -> bool:
        """Return whether a batch is not one of those that are compiled at the start."""
        _, length, begun = key
        return length > shapes.USUAL_LENGTH or begun

    def rows(
        self, sentences: list[str], ways: list[Direction], images: Sequence, prefixes: list[str]
    ) -> list[tuple[tuple, tuple]]:
        """Return the key of each sentence's batches, and its row: text, image and prefix."""
        lengths = padded_lengths(self.translator, sentences, [source for source, _ in ways])
        # Sentences of one padded length make a batch, which is one call of one compiled search.
        keys = zip(ways, lengths, map(bool, prefixes), strict=True)
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
        languages = self.translator.languages
        direction = (languages[0], languages[-1]) if self.translator.multilingual else (None, None)
        tokenizer = tokenizer_of(self.translator, direction[0])
        for rows in warm_up_rows(tokenizer, self.max_length, self._counts, self.translator.image_shape):
            yield (direction, None, False), rows
