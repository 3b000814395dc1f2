"""Beam search over many sentences: batches in a few shapes, each compiled once, several at a time."""

import contextlib
import math
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import keras
import numpy as np

from kzoo.decoding.beam_search import BeamSearch
from kzoo.decoding.search_settings import SearchSettings, output_limit, padded_length
from kzoo.text.vocabulary import END, PAD

# Batch sizes that decoding is compiled for; the lengths are `search_settings.LENGTHS`. Batches of 64 take
# 0.93 of the time of batches of 32.
ROWS = (1, 4, 8, 16, 32, 48, 64)
# From this many sentences of one padded length on, a staged search saves more time than it costs: compiling
# it takes 17 s longer on a CPU.
MANY = 16384


ONE_CALL = threading.RLock()  # saving reads properties that take it, too


def call_lock() -> contextlib.AbstractContextManager:
    """Return a lock on JAX, where Keras donates the weights' buffers during a call; elsewhere, no lock."""
    return ONE_CALL if keras.backend.backend() == "jax" else contextlib.nullcontext()


class BatchedSearch:
    """Batches sentences and searches them with a beam search compiled for each shape.

    It is not a Keras object, so it is not saved with the model.

    Args:
        model: implements the decoding contract; its `encode` takes `{"source": (B, S), …}`.
        max_length: int. Maximum input and output length of the model, in tokens.
        jit_compile: bool. Whether XLA compiles the search.
    """

    def __init__(self, model, max_length: int, jit_compile: bool):
        self.model = model
        self.max_length = max_length
        self.jit_compile = jit_compile
        self._searches = {}
        self._lock = threading.Lock()

    def search(
        self,
        tokens: list[list[int]],
        others: dict[str, np.ndarray],
        settings: SearchSettings,
        threads: int = 2,
        progress: Callable[[int], None] | None = None,
        prefixes: list[list[int]] | None = None,
    ) -> list[tuple[np.ndarray, np.ndarray] | None]:
        """Search for the best outputs of each sentence.

        Args:
            tokens: the sentences as token ids, without start and end.
            others: the other inputs of `encode`, one row per sentence.
            settings: search settings. `output_limit` gives the maximum length for each padded length.
            threads: int. Number of batches decoded in parallel; always one on JAX.
            progress: called in this thread after each batch, with its number of sentences.
            prefixes: for each sentence, the token ids that its outputs begin with; at least one more follows.

        Returns:
            For each sentence its token ids `(K, T)` and scores `(K,)`, best first; `None` for an empty one.
        """
        found = [None] * len(tokens)

        def search_batch(batch: tuple[tuple[int, int], list[int]]) -> int:
            (rows, length), numbers = batch
            source = padded_source(tokens, numbers, (rows, length))
            filled = numbers + numbers[:1] * (rows - len(numbers))  # pad with the first sentence
            limit = output_limit(settings, length, self.max_length)
            inputs = {"source": source, **{name: values[filled] for name, values in others.items()}}
            if prefixes:
                inputs["prefix"] = padded([prefixes[number] for number in filled], limit)
            staged = sentences[length] >= MANY
            search = self._compiled(source.shape, settings.changed(max_length=limit), staged, bool(prefixes))
            with call_lock():
                best = search.predict_on_batch(inputs)
            for row, number in enumerate(numbers):
                found[number] = best["tokens"][row], best["scores"][row]
            return len(numbers)

        batches = batches_by_shape(tokens, self.max_length, prefixes)
        sentences = Counter(length for (_, length), numbers in batches for _ in numbers)
        with ThreadPoolExecutor(threads) as pool:
            for count in pool.map(search_batch, batches):
                if progress is not None:
                    progress(count)
        return found

    def _compiled(self, shape: tuple, settings: SearchSettings, staged: bool, prefixed: bool) -> BeamSearch:
        key = (shape, settings, staged, prefixed)
        with self._lock:
            if key not in self._searches:
                search = BeamSearch(self.model, **vars(settings), staged=staged)
                search.compile(jit_compile=self.jit_compile)
                self._searches[key] = search
            return self._searches[key]


def batches_by_shape(
    tokens: list[list[int]], most: int, prefixes: list[list[int]] | None = None
) -> list[tuple[tuple[int, int], list[int]]]:
    """Return each batch's padded shape `(B, S)` and its sentences' numbers, the longest first.

    A sentence's padded length, and so the maximum length of its translation, does not depend on other
    sentences. All batches of one length have one shape, as each shape is compiled. Empty sentences are in no
    batch.

    Args:
        tokens: the sentences as token ids, without end.
        most: int. Maximum length that the model can take, with the end symbol.
        prefixes: of the outputs. A sentence is padded to its prefix's length if that is longer.
    """
    by_length = {}
    counts = [max(map(len, both)) for both in zip(tokens, prefixes or tokens, strict=True)]
    for number in sorted(range(len(tokens)), key=lambda i: -counts[i]):
        if tokens[number]:
            length = padded_length(counts[number], most)
            by_length.setdefault(length, []).append(number)
    batches = []
    for length, numbers in by_length.items():
        fewest = math.ceil(len(numbers) / ROWS[-1])
        rows = next(rows for rows in ROWS if rows * fewest >= len(numbers))
        batches += [((rows, length), numbers[i : i + rows]) for i in range(0, len(numbers), rows)]
    return batches


def padded(rows: list[list[int]], length: int) -> np.ndarray:
    """Return rows of token ids, padded to `length`."""
    filled = [[*row, *[PAD] * (length - len(row))] for row in rows]
    return np.array(filled, "int32").reshape(len(rows), length)


def padded_source(tokens: list[list[int]], numbers: list[int], shape: tuple[int, int]) -> np.ndarray:
    """Return the numbered sentences with their end symbols, padded to a shape."""
    rows, length = shape
    ended = [[*tokens[number], END] for number in numbers]
    return padded([*ended, *[[]] * (rows - len(ended))], length)
