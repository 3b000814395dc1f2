"""Batches of a few fixed shapes: chooses the shapes, assigns sentence pairs and fills the arrays."""

from collections.abc import Sequence

import numpy as np

from kzoo.errors import UserError
from kzoo.text.vocabulary import END, PAD, START

Shape = tuple[int, int]  # rows, length
# Inputs by name, labels and weights of the labels, for `fit`.
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def padded_batch(shape: Shape, source: list[list[int]], target: list[list[int]]) -> Batch:
    """Return the batch of sentence pairs in a shape `(rows, length)`, as `Batches` describes it."""
    sources, targets, labels = np.full((3, *shape), PAD, "int32")
    for row, (s, t) in enumerate(zip(source, target, strict=True)):
        sources[row, : len(s) + 1] = [*s, END]
        targets[row, : len(t) + 1] = [START, *t]
        labels[row, : len(t) + 1] = [*t, END]
    return {"source": sources, "target": targets}, labels, (labels != PAD).astype("float32")


def plan_batches(
    order: np.ndarray, lengths: np.ndarray, shapes: list[Shape], random: np.random.Generator | None = None
) -> list[tuple[Shape, np.ndarray]]:
    """Return batches of pairs of similar length, each as its shape and the numbers of its pairs.

    Pairs that fit no shape are left out.

    Args:
        order: numbers of the pairs; pairs of the same shape keep this order.
        lengths: lengths of all pairs, with the start or end symbol.
        shapes: the shapes, shortest first.
        random: generator that shuffles the batches; `None`: shortest first, except for the second.
    """
    shape_of, plan = shape_numbers(lengths, shapes)[order], []
    for number, shape in enumerate(shapes):
        pairs = order[shape_of == number]
        plan += [(shape, pairs[i : i + shape[0]]) for i in range(0, len(pairs), shape[0])]
    if random is not None:
        plan = [plan[i] for i in random.permutation(len(plan))]
    return differing_first_two(plan, lambda batch: batch[0])


def shape_numbers(lengths: np.ndarray, shapes: list[Shape]) -> np.ndarray:
    """Return the number of the shortest shape that fits each length; `len(shapes)` if none does."""
    return np.searchsorted([length for _, length in shapes], lengths)


def differing_first_two(plan: list, shape) -> list:
    """Reorder batches so that the first two differ in rows and length, if any two do.

    On TensorFlow, Keras infers from the first two batches whether the length varies. Rows need not differ;
    they are compared only because another order would change resumed runs.

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
    lengths: np.ndarray,
    tokens: int,
    num_shapes: int,
    sentences: int | None = None,
    counts: np.ndarray | None = None,
) -> list[Shape]:
    """Return at most `num_shapes` shapes that minimize padding of sentence pairs, shortest first.

    Dynamic programming over the sorted distinct lengths: cost[j] with m groups is the minimum over i of
    cost[i] with m - 1 groups plus the pairs of lengths i + 1 … j, all padded to length j.

    Args:
        lengths: lengths of pairs, with the start or end symbol; a length may occur more than once.
        tokens: int. Maximum tokens per batch on either side, padding included.
        num_shapes: int. Maximum number of shapes.
        sentences: int. Rows of every batch; `None`: as many as `tokens` allows.
        counts: number of pairs of each length in `lengths`; one each by default.
    """
    distinct, place = np.unique(lengths, return_inverse=True)
    size = len(distinct)
    pairs = np.concatenate([[0], np.cumsum(np.bincount(place, counts))])  # of the i shortest lengths
    # padded[i, j]: tokens after padding the pairs of distinct lengths i … j to the longest of them
    padded = np.where(np.tri(size, k=-1, dtype=bool), np.inf, (pairs[1:] - pairs[:-1, None]) * distinct)
    cost, choices = np.concatenate([[0.0], padded[0]]), [np.zeros(size + 1, int)]
    for _ in range(min(num_shapes, size) - 1):
        totals = cost[:-1, None] + padded
        choices.append(np.concatenate([[0], totals.argmin(axis=0)]))
        cost = np.concatenate([[0.0], totals.min(axis=0)])
    shapes, last = [], size
    for choice in reversed(choices):
        length = int(distinct[last - 1])
        shapes.insert(0, (sentences or tokens // length, length))
        last = choice[last]
    return shapes


def grown(lengths: np.ndarray, growth: float, limit: int) -> np.ndarray:
    """Return lengths with room for `growth` times as many tokens, within `limit`; longer ones unchanged."""
    return np.maximum(lengths, np.minimum(np.ceil(lengths * growth).astype(int), limit))


def pair_lengths(source: list[list[int]], target: list[list[int]], name: str = "") -> np.ndarray:
    """Return the length of the longer side of each pair, with its start or end symbol.

    Raises:
        UserError: no pairs, different numbers of sentences, or text instead of token ids. Messages begin with
            `name`.
    """
    name = f"{name}: " if name else ""
    if len(source) != len(target):
        raise UserError(f"{name}{len(source):,} source sentences but {len(target):,} target sentences")
    if not source:
        raise UserError(f"{name}no sentence pairs")
    for sentence in (source[0], target[0]):
        if isinstance(sentence, str):
            raise UserError(
                f"sentences must be token ids: give tokenizer(texts), not texts ({sentence!r:.40})"
            )
    return np.array([max(len(s), len(t)) + 1 for s, t in zip(source, target, strict=True)])


def check_longest(lengths: np.ndarray, limit: int, pair: str, numbers: Sequence[int] | None = None):
    """Raise `UserError` if a pair is longer than the limit.

    The error names it by `pair` and its number, from 1: its place, or that in `numbers`, from 0.
    """
    if lengths.max() > limit:
        place = lengths.argmax()
        number = 1 + (place if numbers is None else numbers[place])
        raise UserError(
            f"{pair} {number} has {lengths.max()} subwords with its end symbol, "
            f"the limit is {limit}: raise max_length (in a recipe, model.max_length) or tokens; "
            'or, in a recipe, set too_long = "truncate" or "drop"'
        )
