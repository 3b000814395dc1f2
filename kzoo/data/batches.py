"""Batches of token ids in a few fixed shapes, so that each shape is compiled once."""

import hashlib
import itertools

import keras
import numpy as np

from kzoo.data.image_features import FeatureFile
from kzoo.errors import UserError
from kzoo.text.tokenizers import END, PAD, START

# Inputs by name, labels and their weights, as `fit` takes them.
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


class Batches(keras.utils.PyDataset):
    """Batches for `fit` and `evaluate`, with about the same number of tokens each.

    Sentence pairs of similar length share a batch; a batch has one of `num_shapes` shapes, chosen to minimize
    padding. Every pair comes once per epoch, in an order determined by `seed` and the epoch, on every backend
    and machine. The last batch of each shape is filled with empty rows of weight 0.

    Call `fit` with `shuffle=False`, or Keras shuffles the batches itself. For `evaluate` and `predict`, whose
    results would depend on the epoch's batches, make them with `shuffle=False`; predictions come in the
    batches' order, empty rows among them.

    Args:
        source: lists of token ids, one per sentence, without start and end.
        target: the same for their translations.
        tokens: int. Maximum tokens per batch on either side, padding included.
        num_shapes: int. Maximum number of shapes.
        seed: int. Fixes the order of every epoch.
        shuffle: bool. `False`: shortest first, the same order every epoch.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.
        shapes: the batches' (rows, length) pairs, shortest first, instead of automatically chosen ones.
        images: `(N, …)`. One image per pair, such as features on disk. `None`: text only.
        **kwargs: `workers` and other arguments of `keras.utils.PyDataset`.

    Returns (a batch):
        `({"source": (B, L), "target": (B, L)}, labels (B, L), weights (B, L))`. A source ends with the end
        symbol, a target begins with the start symbol, labels are the target's next tokens. With images also
        `"image": (B, …)`.

    Raises:
        UserError: no pairs, different numbers of sentences, or one longer than `max_length` or `tokens`.
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
        shapes: list[tuple[int, int]] | None = None,
        images: np.ndarray | FeatureFile | None = None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        if images is not None and len(images) != len(source):
            raise UserError(f"{len(source):,} sentence pairs but {len(images):,} images: give one per pair")
        self.source, self.target, self.images = source, target, images
        self.seed, self.shuffle = seed, shuffle
        self.shapes = shapes or batch_shapes([(source, target)], tokens, None, num_shapes, max_length)
        self._lengths = pair_lengths(source, target)
        self._shape_of = np.searchsorted([length for _, length in self.shapes], self._lengths)
        if (self._shape_of == len(self.shapes)).any():
            raise UserError(
                f"pair {self._lengths.argmax() + 1} has {self._lengths.max()} tokens with its start or end, "
                f"the longest shape {self.shapes[-1][1]}"
            )
        self.start_epoch(0)

    @property
    def num_words(self) -> int:
        """Number of target tokens per epoch, end symbols included."""
        return sum(len(sentence) + 1 for sentence in self.target)

    def __len__(self) -> int:
        return len(self._plan)

    def __getitem__(self, index: int) -> Batch:
        return self.batch(*self._plan[index])

    def batch(self, shape: tuple[int, int], pairs: np.ndarray) -> Batch:
        """Return the batch of the numbered pairs in a shape `(rows, length)`."""
        inputs, labels, weights = padded_batch(
            shape, [self.source[pair] for pair in pairs], [self.target[pair] for pair in pairs]
        )
        if self.images is not None:
            inputs["image"] = np.zeros((shape[0], *self.images.shape[1:]), self.images.dtype)
            inputs["image"][: len(pairs)] = self.images[pairs]
        return inputs, labels, weights

    def on_epoch_end(self):
        self.start_epoch(self.epoch + 1)

    def start_epoch(self, epoch: int):
        """Put the pairs in the order of epoch `epoch`, counted from 0."""
        self.epoch = epoch
        self._plan = self.plan(epoch)

    def digest(self) -> str:
        """Return the SHA-256 of all pairs' token ids and of 64 of the images: it identifies the data."""
        found = hashlib.sha256()
        for side in (self.source, self.target):
            for first in range(0, len(side), 65536):
                part = side[first : first + 65536]
                found.update(np.fromiter(map(len, part), "<i4").tobytes())
                found.update(np.fromiter(itertools.chain.from_iterable(part), "<i4").tobytes())
        if self.images is not None:
            found.update(np.ascontiguousarray(self.images[:: -(-len(self.images) // 64)]).tobytes())
        return found.hexdigest()

    def plan(self, epoch: int) -> list[tuple[tuple[int, int], np.ndarray]]:
        """Return the batches of an epoch, as `batch` takes them: a shape and the numbers of its pairs."""
        random = np.random.default_rng((self.seed, epoch))
        order = (
            random.permutation(len(self.source)) if self.shuffle else np.argsort(self._lengths, kind="stable")
        )
        plan = one_shape_each(order, self._shape_of, self.shapes)
        if self.shuffle:
            plan = [plan[i] for i in random.permutation(len(plan))]
        return differing_first_two(plan, lambda batch: batch[0])


class RestOfEpoch(keras.utils.PyDataset):
    """The batches of an epoch from a given one on, so that `fit` can start in mid-epoch.

    Args:
        batches: `Batches` or `PairBatches`, in the order of the epoch.
        first: int. Number of the first batch, counted from 0; at least two batches must be left.
    """

    def __init__(self, batches: keras.utils.PyDataset, first: int):
        super().__init__()
        self.batches, self.first, self._begun = batches, first, False

    def __len__(self) -> int:
        return len(self.batches) - self.first

    def on_epoch_begin(self):
        self._begun = True

    def __getitem__(self, index: int):
        # Before the epoch begins, Keras looks at two batches for their shapes: it gets those of the whole
        # epoch, in the order of `differing_first_two`.
        return self.batches[index + self.first if self._begun else index]


def padded_batch(shape: tuple[int, int], source: list[list[int]], target: list[list[int]]) -> Batch:
    """Return the batch of sentence pairs in a shape `(rows, length)`, as `Batches` describes it."""
    words, labels = np.full((2, *shape), PAD, "int32"), np.full(shape, PAD, "int32")
    for row, (s, t) in enumerate(zip(source, target, strict=True)):
        words[0, row, : len(s) + 1] = [*s, END]
        words[1, row, : len(t) + 1] = [START, *t]
        labels[row, : len(t) + 1] = [*t, END]
    return {"source": words[0], "target": words[1]}, labels, (labels != PAD).astype("float32")


def one_shape_each(
    order: np.ndarray, shape_of: np.ndarray, shapes: list[tuple[int, int]]
) -> list[tuple[tuple[int, int], np.ndarray]]:
    """Return batches of pairs of similar length: a shape and the numbers of its pairs each.

    Args:
        order: numbers of the pairs, in the order in which those of a shape follow each other.
        shape_of: for each pair, the number of its shape.
        shapes: (rows, length) each.
    """
    plan = []
    for number, shape in enumerate(shapes):
        pairs = order[shape_of[order] == number]
        plan += [(shape, pairs[i : i + shape[0]]) for i in range(0, len(pairs), shape[0])]
    return plan


def differing_first_two(plan: list, shape) -> list:
    """Return the batches with two that differ in rows and in length first, if there are two such batches.

    Keras on TensorFlow infers from the first two batches which axes vary, beside that of the rows, which it
    always takes to vary. Rows count here all the same: another order would change what runs resume with.

    Args:
        plan: the batches.
        shape: function from a batch to its rows and length.
    """
    rows, length = shape(plan[0])
    differences = [(shape(batch)[0] != rows) + 2 * (shape(batch)[1] != length) for batch in plan]
    other = differences.index(max(differences))
    plan = list(plan)
    plan.insert(min(1, other), plan.pop(other))
    return plan


def batch_shapes(
    sides: list[tuple[list, list]],
    tokens: int,
    sentences: int | None,
    num_shapes: int,
    max_length: int | None = None,
) -> list[tuple[int, int]]:
    """Return the (rows, length) shapes that minimize padding of sentence pairs, shortest first.

    Args:
        sides: source and target of each language pair.
        tokens: int. Maximum tokens per batch on either side, padding included.
        sentences: int. Rows of every batch; `None`: as many as `tokens` allows.
        num_shapes: int. Maximum number of shapes.
        max_length: int. Maximum sentence length, with its start or end symbol. `None`: any.

    Raises:
        UserError: no pairs, different numbers of sentences, or one longer than `max_length` or `tokens`.
    """
    each = [pair_lengths(source, target) for source, target in sides]
    lengths = np.concatenate(each)
    limit = (max_length or lengths.max()) if sentences else min(max_length or tokens, tokens)
    if lengths.max() > limit:
        pair = int(max(each, key=np.max).argmax())
        raise UserError(
            f"sentence pair {pair + 1} has {lengths.max()} subwords with its end symbol, "
            f"the limit is {limit}: raise max_length (in a recipe, model.max_length) or tokens; "
            'or cut or drop such pairs, in a recipe with too_long = "truncate" or "drop"'
        )
    chosen = least_padding(*np.unique(lengths, return_counts=True), num_shapes)
    return [(sentences or tokens // length, length) for length in chosen]


def pair_lengths(source: list[list[int]], target: list[list[int]]) -> np.ndarray:
    """Return the length of the longer side of each pair, with its start or end symbol.

    Raises:
        UserError: no pairs, different numbers of sentences, or text in place of token ids.
    """
    if len(source) != len(target):
        raise UserError(f"{len(source)} source sentences but {len(target)} target sentences")
    if not source:
        raise UserError("no sentence pairs to make batches of")
    for sentence in (source[0], target[0]):
        if isinstance(sentence, str):
            raise UserError(
                f"sentences must be token ids: give tokenizer(texts), not texts ({sentence!r:.40})"
            )
    return np.array([max(len(s), len(t)) + 1 for s, t in zip(source, target, strict=True)])


def least_padding(distinct: np.ndarray, counts: np.ndarray, num_shapes: int) -> list[int]:
    """Return at most `num_shapes` lengths to pad to that minimize the total padding of all sentences.

    Dynamic programming over the sorted distinct lengths: cost[j] with m groups is the least over i of
    cost[i] with m - 1 groups plus the sentences of lengths i + 1 … j, all padded to length j.

    Args:
        distinct: the sentences' lengths, sorted, each once.
        counts: how many sentences have each of them.
        num_shapes: int. Maximum number of lengths to return.
    """
    sentences = np.concatenate([[0], np.cumsum(counts)])
    ends = np.arange(1, len(distinct) + 1)
    # padded[i, j]: tokens after padding the sentences of distinct lengths i … j - 1 to the longest of them
    padded = (sentences[ends][None, :] - sentences[: len(distinct), None]) * distinct[None, :].astype(float)
    padded[np.arange(len(distinct))[:, None] >= ends[None, :]] = np.inf
    cost = np.concatenate([[0.0], padded[0]])
    choices = []
    for _ in range(min(num_shapes, len(distinct)) - 1):
        totals = cost[:-1, None] + padded
        choices.append(np.concatenate([[0], totals.argmin(axis=0)]))
        cost = np.concatenate([[0.0], totals.min(axis=0)])
    last, chosen = len(distinct), []
    for choice in reversed([np.zeros(len(distinct) + 1, int), *choices]):
        if last > 0:
            chosen.append(int(distinct[last - 1]))
            last = choice[last]
    return chosen[::-1]
