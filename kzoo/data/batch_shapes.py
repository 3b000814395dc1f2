"""Sentence pairs in batches of a few fixed shapes: which shapes, which pairs, and the arrays."""

import numpy as np

from kzoo.errors import UserError
from kzoo.text.tokenizers import END, PAD, START

Shape = tuple[int, int]  # rows, length
# Inputs by name, labels and their weights, as `fit` takes them.
Batch = tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]


def padded_batch(shape: Shape, source: list[list[int]], target: list[list[int]]) -> Batch:
    """Return the batch of sentence pairs in a shape `(rows, length)`, as `Batches` describes it."""
    words, labels = np.full((2, *shape), PAD, "int32"), np.full(shape, PAD, "int32")
    for row, (s, t) in enumerate(zip(source, target, strict=True)):
        words[0, row, : len(s) + 1] = [*s, END]
        words[1, row, : len(t) + 1] = [START, *t]
        labels[row, : len(t) + 1] = [*t, END]
    return {"source": words[0], "target": words[1]}, labels, (labels != PAD).astype("float32")


def plan_batches(
    order: np.ndarray, lengths: np.ndarray, shapes: list[Shape], random: np.random.Generator | None = None
) -> list[tuple[Shape, np.ndarray]]:
    """Return batches of pairs of similar length: a shape and the numbers of its pairs each.

    Args:
        order: numbers of the pairs, in the order in which those of a shape follow each other.
        lengths: of all pairs, each with its start or end symbol.
        shapes: shortest first.
        random: puts the batches in a random order; `None`: shortest first.
    """
    shape_of, plan = shape_numbers(lengths, shapes)[order], []
    for number, shape in enumerate(shapes):
        pairs = order[shape_of == number]
        plan += [(shape, pairs[i : i + shape[0]]) for i in range(0, len(pairs), shape[0])]
    if random is not None:
        plan = [plan[i] for i in random.permutation(len(plan))]
    return differing_first_two(plan, lambda batch: batch[0])


def shape_numbers(lengths: np.ndarray, shapes: list[Shape]) -> np.ndarray:
    """Return the number of each length's shape, the shortest that holds it; the number of shapes if none."""
    return np.searchsorted([length for _, length in shapes], lengths)


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
    lengths: np.ndarray, counts: np.ndarray, tokens: int, sentences: int | None, num_shapes: int
) -> list[Shape]:
    """Return the (rows, length) shapes that minimize padding of sentence pairs, shortest first.

    Args:
        lengths: of pairs, each with its start or end symbol; a length may occur again.
        counts: how many pairs have each of them.
        tokens: int. Maximum tokens per batch on either side, padding included.
        sentences: int. Rows of every batch; `None`: as many as `tokens` allows.
        num_shapes: int. Maximum number of shapes.
    """
    distinct, place = np.unique(lengths, return_inverse=True)
    chosen = least_padding(distinct, np.bincount(place, counts), num_shapes)
    return [(sentences or tokens // length, length) for length in chosen]


def pair_lengths(source: list[list[int]], target: list[list[int]], name: str = "") -> np.ndarray:
    """Return the length of the longer side of each pair, with its start or end symbol.

    Raises:
        UserError: no pairs, different numbers of sentences, or text in place of token ids; `name` is theirs.
    """
    name = f"{name}: " if name else ""
    if len(source) != len(target):
        raise UserError(f"{name}{len(source):,} source sentences but {len(target):,} target sentences")
    if not source:
        raise UserError(f"{name}no sentence pairs to make batches of")
    for sentence in (source[0], target[0]):
        if isinstance(sentence, str):
            raise UserError(
                f"sentences must be token ids: give tokenizer(texts), not texts ({sentence!r:.40})"
            )
    return np.array([max(len(s), len(t)) + 1 for s, t in zip(source, target, strict=True)])


def check_longest(lengths: np.ndarray, limit: int, pair: str):
    """Refuse pairs that are longer than the limit.

    Args:
        lengths: of pairs, each with its start or end symbol.
        limit: int.
        pair: what a pair is called in the error.

    Raises:
        UserError: one of them is too long; the message has its number.
    """
    if lengths.max() > limit:
        raise UserError(
            f"{pair} {lengths.argmax() + 1} has {lengths.max()} subwords with its end symbol, "
            f"the limit is {limit}: raise max_length (in a recipe, model.max_length) or tokens; "
            'or cut or drop such pairs, in a recipe with too_long = "truncate" or "drop"'
        )


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
