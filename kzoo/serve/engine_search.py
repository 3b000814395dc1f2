"""CTranslate2's search for the server; Keras is loaded for what it lacks, when that is asked for."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from kzoo.decoding import SearchSettings
from kzoo.engine.translator import CTranslate2Translator
from kzoo.serve.limits import Direction, read_tokens
from kzoo.text.texts import Hypothesis

if TYPE_CHECKING:  # which takes seconds to import
    from kzoo.models import Translator
    from kzoo.serve.keras_search import KerasSearch


class EngineSearch:
    """What the server asks of a `CTranslate2Translator`, with the methods of `KerasSearch`.

    Batches have any size: nothing is compiled. CTranslate2's own queue does not join calls, so the server's
    batches are its calls; each of its workers has a thread of the server's that feeds it.

    Args:
        translator: the engine.
        settings: how translations are searched for.
        max_batch: int. Maximum sentences per batch.

    Attributes:
        threads: int. Batches at a time.
    """

    def __init__(self, translator: CTranslate2Translator, settings: SearchSettings, max_batch: int):
        self.translator, self._settings, self._max_batch = translator, settings, max_batch
        self.threads = max(translator.threads, 2)  # so that Keras has a thread of its own to be loaded in
        self.max_length = translator.max_length

    def sizes(self, key: tuple) -> Sequence[int]:
        """Return the numbers of sentences that batches have."""
        return range(1, self._max_batch + 1)

    def slow(self, key: tuple) -> bool:
        """Return whether a batch is Keras's."""
        return key[2]

    def rows(
        self, sentences: list[str], directions: list[Direction], images: Sequence, prefixes: list[str]
    ) -> list[tuple[tuple, object]]:
        """Return the key of each sentence's batches, and its row: its tokens, or what Keras reads."""
        tokens = read_tokens(self.translator.source_tokenizer, sentences, self.max_length)
        return [
            ((one, self.translator.together(len(row)), bool(prefix)), (text, None, prefix) if prefix else row)
            for one, text, row, prefix in zip(directions, sentences, tokens, prefixes, strict=True)
        ]

    def search(self, key: tuple, rows: list) -> list[list[Hypothesis]]:
        """Return the hypotheses of each row of a batch of one padded length."""
        if key[2]:
            return self._keras.search(key, rows)
        return self.translator.n_best_of_tokens(rows, self._settings.beam_size, self._settings)

    def usual(self) -> Iterator[tuple[tuple, list]]:
        """Yield a batch, as key and rows, that shows whether the model translates."""
        yield (None, None, False), self.translator.source_tokenizer(["a"])

    @cached_property
    def _keras(self) -> "KerasSearch":  # used in one thread only: that of slow batches
        from kzoo.presets.shelf import load
        from kzoo.serve.keras_search import KerasSearch

        return KerasSearch(load(str(self.translator.folder)), self._settings, self._max_batch)

    def keras_translator(self) -> "Translator":
        """Return Keras's translator of the preset, loaded once; called in the thread of slow batches."""
        return self._keras.translator
