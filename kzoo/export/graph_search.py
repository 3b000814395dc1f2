"""Runs sentences through a compiled function in batches of few shapes, inside a TensorFlow graph.

With XLA, it pads to the same lengths as `kzoo.decoding.batched_search`, so that a SavedModel translates like
`translate`. Without XLA there are fewer lengths, so a translation may become longer before it is cut.
"""

from collections.abc import Callable

import tensorflow as tf

from kzoo.decoding.search_settings import LENGTHS
from kzoo.text.vocabulary import END, PAD

# XLA compiles a batch's shape (rows and length) when it first occurs. The graph has one search per length.
# With one per shape, loading a SavedModel took 2.1 times as long, and the first call 1.9 times.
ROWS = (1, 8, 32)


def padded_lengths(most: int, xla: bool) -> list[int]:
    """Return the padded lengths of sentences, for a model that takes at most `most` tokens.

    Without XLA, every third length suffices. With all eight, TensorFlow took 20 s at the first call to
    optimize the graph of a model of four languages.
    """
    return [length for length in (LENGTHS if xla else LENGTHS[1::3]) if length < most] + [most]


def in_batches(
    tokens, others: dict, empty: dict, lengths: list[int], make: Callable[[int], Callable]
) -> dict:
    """Return a function's outputs for each sentence; `empty` for sentences without a token.

    Args:
        tokens: ragged int32 `(B, None)`, token ids without start and end, which the model can read.
        others: other inputs, tensors with one row per sentence. A `"prefix"` has padded token ids; a sentence
            is padded to its prefix's length if that is longer, as in `batched_search`.
        empty: tensors `(B, …)` of the outputs' shapes.
        lengths: the padded lengths.
        make: function from a padded length L to a compiled function, which takes `{"source": (R, L), …}`, R
            from `ROWS`, and returns outputs `(R, …)`. These are padded with zeros to the shapes of `empty`.
    """
    counts = tf.cast(tokens.row_lengths(), tf.int32)
    if "prefix" in others:
        prefix_lengths = tf.math.count_nonzero(others["prefix"], axis=1, dtype=tf.int32)
        counts = tf.where(counts > 0, tf.maximum(counts, prefix_lengths), 0)
    results, shorter = empty, 1  # those without a token keep `empty`
    for length in lengths:
        here = (counts >= shorter) & (counts < length)
        numbers = tf.cast(tf.where(here)[:, 0], tf.int32)
        results = _length_in_batches(tokens, others, results, numbers, length, make(length))
        shorter = length
    return results


def _length_in_batches(tokens, others, results, numbers, length, function):
    """Return the results, updated for the numbered sentences, which share a padded length."""

    def step(first, results):
        left = tf.shape(numbers)[0] - first
        rows = tf.gather(ROWS, tf.reduce_sum(tf.cast(left > ROWS[:-1], tf.int32)))
        chosen = numbers[first : first + rows]
        real = tf.shape(chosen)[0]
        filled = tf.concat([chosen, tf.repeat(chosen[:1], rows - real)], axis=0)  # copies of the first
        gathered = {name: tf.gather(values, filled) for name, values in others.items()}
        ended = tf.concat([tf.cast(tf.gather(tokens, filled), tf.int32), tf.fill([rows, 1], END)], axis=1)
        found = function({"source": ended.to_tensor(PAD, shape=(None, length)), **gathered})
        updated = {name: _put(results[name], chosen, found[name][:real]) for name in results}
        return first + rows, updated

    return tf.while_loop(lambda first, _: first < tf.shape(numbers)[0], step, (tf.constant(0), results))[1]


def by_group(groups, inputs: tuple, empty: dict, run: Callable) -> dict:
    """Return a function's outputs for each row. It is called with the rows of one group at a time.

    Args:
        groups: int32 `(B,)`. The group of each row.
        inputs: tensors `(B, …)`.
        empty: tensors `(B, …)` of the outputs' shapes.
        run: function from a group's rows of `inputs` to their outputs.
    """
    present = tf.unique(groups).y

    def step(i, results):
        numbers = tf.cast(tf.where(tf.equal(groups, present[i]))[:, 0], tf.int32)
        found = run(*(tf.gather(values, numbers) for values in inputs))
        return i + 1, {
            name: tf.tensor_scatter_nd_update(results[name], numbers[:, None], rows)
            for name, rows in found.items()
        }

    return tf.while_loop(lambda i, _: i < tf.shape(present)[0], step, (tf.constant(0), empty))[1]


def _put(results, numbers, found):
    """Return `results` `(B, …)` with `found`, padded with zeros, in the numbered rows."""
    missing = [[0, 0]] + [
        [0, full - part] for full, part in zip(results.shape[1:], found.shape[1:], strict=True)
    ]
    return tf.tensor_scatter_nd_update(results, numbers[:, None], tf.pad(found, missing))
