"""CTranslate2's search for the server. It loads Keras for prefixes and attention, on first use."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kzoo.decoding import SearchSettings
from kzoo.engine.translator import CTranslate2Translator
from kzoo.text.texts import Hypothesis
from kzoo.text.vocabulary import UNKNOWN

if TYPE_CHECKING:  # importing it takes seconds
    from kzoo.serve.keras_search import KerasSearch


class EngineSearch:
    """The server's interface to a `CTranslate2Translator`, with the methods of `KerasSearch`.

    Batches may have any size, because nothing is compiled. CTranslate2 does not join calls into batches, so
    the server does; one of its threads feeds each of CTranslate2's workers.
    """

    def __init__(self, translator: CTranslate2Translator, settings: SearchSettings, max_batch: int):
        self.translator, self._settings, self._max_batch = translator, settings, max_batch
        self.threads = max(translator.threads, 2)  # so that Keras loads in a thread of its own
        self.max_length, self.length = translator.max_length, translator.together

    def sizes(self, key: tuple) -> Sequence[int]:
        """Return the sizes of batches."""
        return range(1, self._max_batch + 1)

    def slow(self, key: tuple) -> bool:
        """Return whether Keras translates a batch: with prefixes."""
        return key[2]

    def search(self, key: tuple, rows: list) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row of a batch."""
        if self.slow(key):
            return self.keras.search(key, rows)
        tokens = [row[0] for row in rows]
        return self.translator.n_best_of_tokens(tokens, self._settings.beam_size, self._settings)

    def usual(self) -> Iterator[tuple[tuple, list]]:
        """Yield the key and rows of a batch that tests the model."""
        yield (None, None, False), [([UNKNOWN], None, [])]

    @cached_property
    def keras(self) -> "KerasSearch":
        """Keras's search of the same preset; used only in the thread of slow batches."""
        from kzoo.presets.shelf import load
        from kzoo.serve.keras_search import KerasSearch

        return KerasSearch(load(str(self.translator.folder)), self._settings, self._max_batch)
