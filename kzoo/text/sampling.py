"""Subword regularization: other segmentations of sentences into the subwords of a SentencePiece model.

Kudo 2018, "Subword Regularization" (https://arxiv.org/abs/1804.10959), for a unigram model; Provilkov et al.
2020, "BPE-Dropout" (https://arxiv.org/abs/1910.13267), for a byte-pair encoding.
"""

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import sentencepiece

from kzoo.text.vocabulary import UNKNOWN

SAMPLE = 1000  # sentences to estimate how much longer samples are
SEEDING = threading.Lock()


class SubwordSampler:
    """Draws segmentations of sentences.

    Args:
        proto: the SentencePiece model.
        alpha: for a byte-pair encoding, the probability p that a merge is left out; for a unigram model, the
            smoothing α: the lower, the more the segmentations differ.
    """

    def __init__(self, proto: bytes, alpha: float):
        self._processor, self._alpha = sentencepiece.SentencePieceProcessor(model_proto=proto), alpha

    def __call__(self, rows: Sequence[Sequence[int]], seed: Sequence[int]) -> list[list[int]]:
        """Return another segmentation of each sentence, as token ids; `seed` fixes all of them.

        Sentences with unknown tokens stay as they are, because their text is not known.
        """
        (number,) = np.random.SeedSequence(seed).generate_state(1)
        # SentencePiece has a generator for each thread, and seeds it when the thread first draws.
        with SEEDING, ThreadPoolExecutor(1) as thread:
            sentencepiece.set_random_generator_seed(int(number) >> 1)
            return thread.submit(lambda: [*map(self._sampled, rows)]).result()

    def growth(self, rows: Sequence[Sequence[int]]) -> float:
        """Return how many times as many tokens sampled segmentations of sentences have, at least 1."""
        rows = rows[:SAMPLE]
        drawn = self(rows, (0,))
        return max(1.0, sum(map(len, drawn)) / max(1, sum(map(len, rows))))

    def _sampled(self, row: Sequence[int]) -> list[int]:
        if UNKNOWN in row:
            return list(row)
        text = self._processor.decode([int(token) for token in row])
        drawn = self._processor.encode(text, enable_sampling=True, alpha=self._alpha, nbest_size=-1)
        return list(row) if UNKNOWN in drawn else drawn
