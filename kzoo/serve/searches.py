"""The searches of the server, one per engine: Keras's, in batches of a few shapes, and CTranslate2's.

Keras is imported only where it searches: for CTranslate2, on first use of prefixes or attention.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from kzoo.decoding import SearchSettings
from kzoo.decoding.search_settings import LENGTHS, padded_length
from kzoo.decoding.text_reader import Rows
from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.vocabulary import UNKNOWN

if TYPE_CHECKING:  # Keras is not imported for CTranslate2, nor CTranslate2 for Keras
    from kzoo.engine.translator import CTranslate2Translator
    from kzoo.models import Translator

# Searches for longer sentences are compiled when one arrives.
USUAL_LENGTH = 48
# Batches of longer sentences are smaller, so that others wait less: at 256 subwords, a quarter of the rows.
FULL_LENGTH = 64


class KerasSearch:
    """The server's interface to a `Translator`.

    A row is a sentence's token ids, its image or `None`, and the token ids that its translations begin with.
    A batch's key is the direction, the padded length, and whether its translations begin with a prefix.

    Args:
        translator: of one direction or of many.
        settings: of the search.
        max_batch: int. Maximum sentences per batch.

    Attributes:
        threads: int. Number of batches that run at a time.
        max_length: int. The most tokens that the model reads or writes, with the end symbol.
    """

    def __init__(self, translator: "Translator", settings: SearchSettings, max_batch: int):
        import keras

        from kzoo.decoding.batched_search import ROWS

        self.translator, self._settings = translator, settings
        self.max_length = translator.max_length
        self._counts = [*(rows for rows in ROWS if rows < max_batch), max_batch]
        # On JAX, one call runs at a time: Keras donates the weights' buffers.
        self.threads = 1 if keras.backend.backend() == "jax" else 2

    def length(self, count: int) -> int:
        """Return the length that a sentence of `count` tokens is padded to; 0 for one without a token."""
        return padded_length(count, self.max_length) if count else 0

    def sizes(self, key: tuple) -> list[int]:
        """Return the sizes that a key's batches are padded to."""
        most = self._counts[-1] * FULL_LENGTH
        return [rows for rows in self._counts if rows == 1 or rows * key[1] <= most]

    def slow(self, key: tuple) -> bool:
        """Return whether a batch's search is not compiled at startup."""
        _, length, prefixed = key
        return length > USUAL_LENGTH or prefixed

    def search(self, key: tuple, rows: list[tuple]) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row of a batch."""
        direction, _, prefixed = key
        tokens, images, prefixes = map(list, zip(*rows, strict=True))
        images = np.stack(images) if self.translator.image_shape else None
        rows, n = Rows(tokens, images, prefixes if prefixed else None), self._settings.beam_size
        return self.translator.n_best_of_rows(rows, n, self._settings, direction, threads=1)

    def usual(self) -> Iterator[tuple[tuple, list[tuple]]]:
        """Yield the key and rows of a batch of each usual shape, to compile its search."""
        direction, shape, image = a_direction(self.translator), self.translator.image_shape, None
        if shape is not None:
            image = np.zeros(shape, "uint8" if len(shape) == 3 else "float32")
        lengths = sorted({min(length, self.max_length) for length in LENGTHS if length <= USUAL_LENGTH})
        for rows in self._counts:  # small batches come first
            for length in lengths:
                row = [UNKNOWN] * (length - 1), image, []
                yield (direction, length, False), [row] * rows


class EngineSearch:
    """The server's interface to a `CTranslate2Translator`, with the methods of `KerasSearch`.

    Batches may have any size, because nothing is compiled. CTranslate2 does not batch calls, so the server
    does; one of its threads feeds each of CTranslate2's workers. `start_keras` is called before Keras is
    loaded.
    """

    def __init__(
        self,
        translator: "CTranslate2Translator",
        settings: SearchSettings,
        max_batch: int,
        start_keras: Callable[[], None],
    ):
        translator.check_search(settings)
        self.translator, self._settings, self._max_batch = translator, settings, max_batch
        self._start_keras = start_keras
        self.threads = max(translator.threads, 2)  # so that Keras loads in a thread of its own
        self.max_length, self.length = translator.max_length, translator.length_of_batch

    def sizes(self, key: tuple) -> Sequence[int]:
        """Return the sizes of batches."""
        return range(1, self._max_batch + 1)

    def slow(self, key: tuple) -> bool:
        """Return whether Keras translates a batch: only batches with prefixes."""
        return key[2]

    def search(self, key: tuple, rows: list) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row of a batch."""
        if self.slow(key):
            return self.keras.search(key, rows)
        rows, n = Rows([row[0] for row in rows]), self._settings.beam_size
        return self.translator.n_best_of_rows(rows, n, self._settings, key[0])

    def usual(self) -> Iterator[tuple[tuple, list]]:
        """Yield the key and rows of a batch that tests the model, unless a request is to load it."""
        if self.translator.is_loaded:
            yield (a_direction(self.translator), None, False), [([UNKNOWN], None, [])]

    @cached_property
    def keras(self) -> KerasSearch:
        """Keras's search of the same preset; used only in the thread of slow batches."""
        # Both engines must have the same model; the folder may have been trained on or replaced.
        preset = self.translator.preset
        if Preset(preset.folder).files != preset.files:
            raise UserError("the preset has changed since the server was started: restart the server")
        # If both engines are on one GPU, Keras must not take all of its memory.
        os.environ.setdefault("TF_FORCE_GPU_ALLOW_GROWTH", "true")
        os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
        self._start_keras()
        from kzoo.presets.shelf import load

        return KerasSearch(load(preset), self._settings, self._max_batch)


def a_direction(translator: "Translator | CTranslate2Translator") -> Direction:
    """Return one of a translator's directions, of which there may be thousands."""
    source, target = translator.languages[0], translator.languages[-1]
    if not translator.multilingual and (targets := translator.target_languages):
        source, target = (translator.source_languages or [source])[0], targets[-1]
    return source, target
