"""Batches of token ids in a few fixed shapes, each compiled once."""

import functools
import hashlib
import itertools

import keras
import numpy as np

from kzoo.data.batch_shapes import (
    Batch,
    Shape,
    batch_shapes,
    check_longest,
    grown,
    padded_batch,
    pair_lengths,
    plan_batches,
    shape_numbers,
)
from kzoo.data.features import FeatureFile
from kzoo.data.shards import OpenShard, Shards
from kzoo.errors import UserError


class BatchesByEpoch(keras.utils.PyDataset):
    """Base class of batches whose order depends on the epoch: `start_epoch` sets `_plan`."""

    def __len__(self) -> int:
        return len(self._plan)

    def start_epoch(self, epoch: int):
        """Put the batches in the order of epoch `epoch`, counted from 0."""
        self.epoch = epoch
        self._plan = self.plan(epoch)

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)


class Batches(BatchesByEpoch):
    """Batches for `fit` and `evaluate`, with about the same number of tokens each.

    Sentence pairs of similar length share a batch. Each batch has one of `num_shapes` shapes, chosen to
    minimize padding. Every pair occurs once per epoch. `seed` and the epoch determine the order, on every
    backend and machine. The last batch of each shape is padded with empty rows of weight 0.

    Call `fit` with `shuffle=False`; otherwise Keras shuffles the batches itself. For `evaluate` and
    `predict`, create `Batches` with `shuffle=False`; otherwise results depend on the epoch. Predictions are
    in the order of `plan(0)`, which has the numbers of each batch's pairs, and include the empty rows.

    Args:
        source: lists of token ids, one per sentence, without start and end symbols.
        target: the same for their translations.
        tokens: int. Maximum tokens per batch on either side, padding included.
        num_shapes: int. Maximum number of shapes.
        seed: int. Fixes the order of every epoch.
        shuffle: bool. `False`: shortest first in every epoch, except that the first two batches differ.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.
        shapes: the batches' (rows, length), shortest first; chosen automatically by default.
        images: `(N, …)`. One image per pair, such as features on disk. `None`: text only.
        growth: float. Room for so many times the tokens that the sentences have.
        **kwargs: `workers` and other arguments of `keras.utils.PyDataset`.

    Returns (a batch):
        `({"source": (B, L), "target": (B, L)}, labels (B, L), weights (B, L))`. A source ends with the end
        symbol, a target begins with the start symbol, labels are the target's next tokens. With images also
        `"image": (B, …)`.

    Raises:
        UserError: no pairs, different numbers of sentences, or a sentence longer than `max_length` or
            `tokens`.
    """

    def __init__(
        self,
        source: list[list[int]],
        target: list[list[int]],
        tokens: int = 2048,
        num_shapes: int = 7,
        seed: int = 0,
        shuffle: bool = True,
        max_length: int | None = None,
        shapes: list[Shape] | None = None,
        images: np.ndarray | FeatureFile | None = None,
        growth: float = 1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if images is not None and len(images) != len(source):
            raise UserError(f"{len(source):,} sentence pairs but {len(images):,} images: give one per pair")
        self.source, self.target, self.images = source, target, images
        self.seed, self.shuffle = seed, shuffle
        lengths = pair_lengths(source, target)
        limit = shapes[-1][1] if shapes else min(max_length or tokens, tokens)
        check_longest(lengths, limit, "sentence pair")
        self._lengths = grown(lengths, growth, limit)
        self.shapes = shapes or batch_shapes(self._lengths, tokens, num_shapes)
        self.start_epoch(0)

    @property
    def num_tokens(self) -> int:
        """Number of target tokens per epoch, end symbols included."""
        return sum(len(sentence) + 1 for sentence in self.target)

    def __getitem__(self, index: int) -> Batch:
        return self.batch(*self._plan[index])

    def batch(self, shape: Shape, pairs: np.ndarray) -> Batch:
        """Return the batch of the numbered pairs in a shape `(rows, length)`."""
        inputs, labels, weights = padded_batch(
            shape, [self.source[pair] for pair in pairs], [self.target[pair] for pair in pairs]
        )
        if self.images is not None:
            inputs["image"] = np.zeros((shape[0], *self.images.shape[1:]), self.images.dtype)
            inputs["image"][: len(pairs)] = self.images[pairs]
        return inputs, labels, weights

    def digest(self) -> str:
        """Return a SHA-256 that identifies the data: of all token ids and of up to 64 images."""
        found = hashlib.sha256()
        for side in (self.source, self.target):
            for first in range(0, len(side), 65536):
                part = side[first : first + 65536]
                found.update(np.fromiter(map(len, part), "<i4").tobytes())
                found.update(np.fromiter(itertools.chain.from_iterable(part), "<i4").tobytes())
        if self.images is not None:
            found.update(sample_of(self.images))
        return found.hexdigest()

    def plan(self, epoch: int) -> list[tuple[Shape, np.ndarray]]:
        """Return the batches of an epoch as arguments of `batch`: a shape and the numbers of its pairs."""
        if not self.shuffle:
            return plan_batches(np.argsort(self._lengths, kind="stable"), self._lengths, self.shapes)
        random = np.random.default_rng((self.seed, epoch))
        return plan_batches(random.permutation(len(self.source)), self._lengths, self.shapes, random)


def sample_of(images: np.ndarray | FeatureFile) -> bytes:
    """Return the bytes of up to 64 images, for a digest."""
    return np.ascontiguousarray(images[:: -(-len(images) // 64)]).tobytes()


class ShardedBatches(BatchesByEpoch):
    """Batches for `fit`, like `Batches`, read from shards on demand.

    Every pair occurs once per epoch. `seed` and the epoch determine the order of the shards and the order
    within each shard. A shard is a random sample of the corpus. The list of an epoch's batches and the plans
    of two shards are in memory, but not the shards' tokens. In each shard, the last batch of each shape is
    padded with empty rows of weight 0.

    Call `fit` with `shuffle=False`; otherwise Keras shuffles the batches itself.

    Args:
        shards: the corpus.
        tokens: int. Maximum tokens per batch on either side, padding included.
        num_shapes: int. Maximum number of shapes.
        seed: int. Fixes the order of every epoch.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.
        too_long: what to do with longer sentences: `"error"`, raise an error; `"truncate"`, cut them;
            `"drop"`, leave out their pairs.
        growth: float. Room for so many times the tokens that the sentences have.
        **kwargs: `workers` and other arguments of `keras.utils.PyDataset`.

    Returns (a batch):
        as for `Batches`.

    Attributes:
        num_tokens: int. Number of target tokens per epoch, end symbols included.
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
        growth: float = 1.0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.shards, self.seed, self._growth = shards, seed, growth
        self._limit, self._too_long = min(max_length or tokens, tokens), too_long
        self.num_tokens, self.dropped, histograms = 0, 0, []
        for number in range(len(shards)):
            lengths = self._lengths(number)
            longest = lengths.max(axis=1)
            if too_long == "error":
                check_longest(longest, self._limit, f"{shards.path(number)}: pair")
            kept = longest <= self._limit
            self.dropped += int(np.count_nonzero(~kept))
            self.num_tokens += int(lengths[kept, 1].sum())
            histograms.append(np.unique(grown(longest[kept], growth, self._limit), return_counts=True))
        if not self.num_tokens:
            raise UserError(
                f"{shards.folder}: all pairs are longer than {self._limit} tokens: "
                "raise max_length (in a recipe, model.max_length) or tokens"
            )
        lengths, counts = (np.concatenate(part) for part in zip(*histograms, strict=True))
        self.shapes = batch_shapes(lengths, tokens, num_shapes, counts=counts)
        # How many batches of each shape each shard gives.
        rows = [rows for rows, _ in self.shapes]
        pairs = [np.bincount(shape_numbers(some, self.shapes), n, len(rows)) for some, n in histograms]
        self._batches_in = np.ceil(np.divide(pairs, rows)).astype(int)
        self._opened = functools.lru_cache(maxsize=2)(self._open)
        self.start_epoch(0)

    def _lengths(self, number: int) -> np.ndarray:
        lengths = self.shards.lengths(number)
        return np.minimum(lengths, self._limit) if self._too_long == "truncate" else lengths

    def plan(self, epoch: int) -> np.ndarray:
        """Return the batches of an epoch, `(batches, 2)`: a shard's number and a batch's place in it."""
        order = np.random.default_rng((self.seed, epoch)).permutation(len(self.shards))
        # The first two batches must differ (see `differing_first_two`): begin with a shard of two shapes.
        first = int((np.count_nonzero(self._batches_in[order], axis=1) > 1).argmax())
        order = np.array([order[first], *np.delete(order, first)])
        counts = self._batches_in.sum(axis=1)[order]
        return np.stack([np.repeat(order, counts), np.concatenate(list(map(np.arange, counts)))], axis=1)

    def digest(self) -> str:
        """Return the SHA-256 that identifies the training data."""
        return self.shards.digest()

    def __getitem__(self, index: int):
        number, place = self._plan[index].tolist()
        shard, plan = self._opened(number, self.epoch)
        shape, pairs = plan[place]
        source, target = shard.pairs(pairs)
        if self._too_long == "truncate":
            source, target = ([tokens[: self._limit - 1] for tokens in side] for side in (source, target))
        return padded_batch(shape, source, target)

    def _open(self, number: int, epoch: int) -> tuple[OpenShard, list]:
        """Return a shard, and the plan of its batches in an epoch."""
        random = np.random.default_rng((self.seed, epoch, number))
        # `plan_batches` leaves out pairs over the limit.
        longest = grown(self._lengths(number).max(axis=1), self._growth, self._limit)
        plan = plan_batches(random.permutation(len(longest)), longest, self.shapes, random)
        return self.shards.open(number), plan
