"""Batches from shards on disk: like `Batches`, for a corpus of any size."""

import functools

import keras
import numpy as np

from kzoo.data.batches import differing_first_two, least_padding, one_shape_each, padded_batch
from kzoo.data.shards import OpenShard, Shards
from kzoo.errors import UserError


class ShardedBatches(keras.utils.PyDataset):
    """Batches for `fit`, like `Batches`, read from shards on demand.

    Every pair comes once per epoch. The order of the shards, each a random sample of the corpus, and the
    order in each shard are determined by `seed` and the epoch. Only the plans of the current and the last
    shard are in memory, not their tokens. The last batch of each shape of a shard is filled with empty rows
    of weight 0.

    Call `fit` with `shuffle=False`, or Keras shuffles the batches itself.

    Args:
        shards: the corpus.
        tokens: int. Maximum tokens per batch on either side, padding included.
        num_shapes: int. Maximum number of shapes.
        seed: int. Fixes the order of every epoch.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.
        too_long: what becomes of longer sentences: `"error"`; `"truncate"`, they are cut; `"drop"`, their
            pairs are left out.
        **kwargs: `workers` and other arguments of `keras.utils.PyDataset`.

    Returns (a batch):
        as for `Batches`.

    Attributes:
        num_words: int. Number of target tokens per epoch, end symbols included.
        dropped: int. Number of pairs that are left out.

    Raises:
        UserError: a sentence is longer than `max_length` or `tokens`, or a file is damaged.
    """

    def __init__(
        self,
        shards: Shards,
        tokens: int = 2048,
        num_shapes: int = 7,
        seed: int = 0,
        max_length: int | None = None,
        too_long: str = "error",
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.shards, self.seed = shards, seed
        self._limit, self._too_long = min(max_length or tokens, tokens), too_long
        self.num_words, self.dropped, histograms = 0, 0, []
        for number in range(len(shards)):
            lengths = self._lengths(number)
            if too_long == "error":
                self._check_longest(number, lengths, self._limit)
            kept = self._kept(lengths)
            self.dropped += len(lengths) - len(kept)
            lengths = lengths[kept]
            self.num_words += int(lengths[:, 1].sum())
            histograms.append(np.unique(lengths.max(axis=1), return_counts=True))
        if not self.num_words:
            raise UserError(
                f"{shards.folder}: each pair is longer than {self._limit}: raise max_length or tokens"
            )
        self.shapes = _shapes(histograms, tokens, num_shapes)
        self._batches_in = np.array([self._count(*histogram) for histogram in histograms])
        self._opened = functools.lru_cache(maxsize=2)(self._open)
        self.start_epoch(0)

    def _lengths(self, number: int) -> np.ndarray:
        lengths = self.shards.lengths(number)
        return np.minimum(lengths, self._limit) if self._too_long == "truncate" else lengths

    def _kept(self, lengths: np.ndarray) -> np.ndarray:
        """Return the numbers of the pairs that fit."""
        return np.flatnonzero(lengths.max(axis=1) <= self._limit)

    def _check_longest(self, number: int, lengths: np.ndarray, limit: int):
        longest = lengths.max(axis=1)
        if longest.max() > limit:
            raise UserError(
                f"{self.shards.path(number)}: pair {longest.argmax() + 1} has {longest.max()} subwords with "
                f"its end symbol, the limit is {limit}: raise max_length (in a recipe, model.max_length) or "
                'tokens; or choose too_long = "truncate" or "drop"'
            )

    def _shape_of(self, lengths: np.ndarray) -> np.ndarray:
        return np.searchsorted([length for _, length in self.shapes], lengths)

    def _count(self, lengths: np.ndarray, counts: np.ndarray) -> np.ndarray:
        """Return how many batches of each shape a shard gives."""
        pairs = np.bincount(self._shape_of(lengths), counts, len(self.shapes)).astype(int)
        return -(-pairs // [rows for rows, _ in self.shapes])

    def start_epoch(self, epoch: int):
        """Put the pairs in the order of epoch `epoch`, counted from 0."""
        self.epoch = epoch
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.shards))
        # The first two batches must differ, as in `differing_first_two`.
        first = int((np.count_nonzero(self._batches_in[order], axis=1) > 1).argmax())
        self._order = np.array([order[first], *np.delete(order, first)])
        self._stops = np.cumsum(self._batches_in.sum(axis=1)[self._order])
        self._opened.cache_clear()

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def digest(self) -> str:
        """Return the SHA-256 that identifies the training data."""
        return self.shards.digest()

    def __len__(self) -> int:
        return int(self._stops[-1])

    def __getitem__(self, index: int):
        place = int(np.searchsorted(self._stops, index, side="right"))
        shard, plan = self._opened(place)
        shape, pairs = plan[index - self._stops[place]]  # counted from the end of the shard's batches
        source, target = shard.pairs(pairs)
        if self._too_long == "truncate":
            source, target = ([words[: self._limit - 1] for words in side] for side in (source, target))
        return padded_batch(shape, source, target)

    def _open(self, place: int) -> tuple[OpenShard, list]:
        """Return the shard at a position in the epoch's order, and the plan of its batches."""
        number = int(self._order[place])
        random = np.random.default_rng((self.seed, self.epoch, number))
        lengths = self._lengths(number)
        shape_of, order = self._shape_of(lengths.max(axis=1)), random.permutation(len(lengths))
        order = order[np.isin(order, self._kept(lengths))]
        plan = one_shape_each(order, shape_of, self.shapes)
        plan = [plan[i] for i in random.permutation(len(plan))]
        return self.shards.open(number), differing_first_two(plan, lambda batch: batch[0])


def _shapes(histograms: list[tuple], tokens: int, num_shapes: int) -> list[tuple[int, int]]:
    """Return the (rows, length) shapes that minimize padding, from all shards' histograms of lengths."""
    lengths, counts = (np.concatenate(part) for part in zip(*histograms, strict=True))
    distinct, place = np.unique(lengths, return_inverse=True)
    totals = np.bincount(place, counts)
    return [(tokens // length, length) for length in least_padding(distinct, totals, num_shapes)]
