"""What hypotheses of a beam search may not go on with: an early end, a repeated n-gram, another prefix."""

import numpy as np
from keras import ops

from kzoo.text.tokenizers import END, PAD

# Used as log 0: finite, so that sums of it stay ordered and no backend makes it NaN.
NEVER = -1e9


def ruled_out(history, step, prefix, min_length: int, no_repeat_ngram: int, vocabulary_size: int):
    """Return what is added to the log-probabilities of the next tokens: 0, or `NEVER` for what is ruled out.

    Args:
        history: int32 `(B, K, T)`. The tokens so far, then padding.
        step: int32 scalar. How many tokens there are so far.
        prefix: int32 `(B, P)`, the tokens that outputs begin with, then padding; P is at least T. It may
            repeat n-grams. `None`: outputs begin with anything.
        min_length: int. Minimum length of an output, end symbol included.
        no_repeat_ngram: int. n, for outputs in which no n tokens occur twice in the same order; 0: they may.
        vocabulary_size: int. V.

    Returns:
        What broadcasts to `(B, K, V)`.
    """
    found = 0.0
    if min_length > 1:
        end = np.zeros(vocabulary_size, "float32")
        end[END] = NEVER
        found = ops.where(step + 1 < min_length, end, found)
    if 0 < no_repeat_ngram <= history.shape[2]:
        found = found + _repeated(history, step, no_repeat_ngram, vocabulary_size)
    if prefix is not None:
        next_token = ops.take(prefix, step, axis=1)[:, None, None]  # (B, 1, 1)
        others = ops.not_equal(ops.arange(vocabulary_size, dtype="int32"), next_token)
        found = ops.where(ops.equal(next_token, PAD), found, ops.where(others, NEVER, 0.0))
    return found


def _repeated(history, step, n: int, vocabulary_size: int):
    """Return `NEVER` for tokens that, after the newest n - 1, would repeat an n-gram of the history."""
    B, (K, T) = ops.shape(history)[0], history.shape[1:]
    places = T - n + 1  # where an n-gram can begin
    newest = ops.take(history, ops.maximum(step - n + 1, 0) + ops.arange(n - 1, dtype="int32"), axis=2)
    same = ops.broadcast_to(ops.arange(places, dtype="int32") + n <= step, (B, K, places))
    for i in range(n - 1):
        same = same & ops.equal(history[:, :, i : i + places], newest[:, :, i : i + 1])
    tokens = ops.where(same, history[:, :, n - 1 :], PAD)  # padding is ruled out anyway
    rows = ops.reshape(ops.arange(B * K, dtype="int32"), (B, K, 1))
    positions = ops.reshape(rows * vocabulary_size + tokens, (B * K * places, 1))
    nothing = ops.zeros((B * K * vocabulary_size,), "float32")
    found = ops.scatter_update(nothing, positions, ops.full((B * K * places,), NEVER, "float32"))
    return ops.reshape(found, (B, K, vocabulary_size))
