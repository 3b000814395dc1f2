"""The masked softmax of all attention layers of the zoo."""

from keras import ops


def masked_softmax(scores, mask=None):
    """Return the softmax over the last axis: computed in float32, returned in the scores' dtype.

    Args:
        scores: `(…, N)`.
        mask: bool, broadcast to `(…, N)`. Entries at `False` get weight 0; a row that is `False` throughout
            gets uniform weights. All are `True` by default.
    """
    return ops.cast(ops.softmax(_masked(scores, mask), axis=-1), scores.dtype)


def masked_exponentials(scores, mask=None) -> tuple:
    """Return `masked_softmax` before its division: numerators `(…, N)`, at most 1, and their sums `(…, 1)`.

    Mix the values with the numerators and divide the result: then no array of the scores' size is divided or,
    in the gradient, summed.

    Args:
        scores, mask: as in `masked_softmax`.
    """
    wide = _masked(scores, mask)
    numerators = ops.exp(wide - ops.stop_gradient(ops.max(wide, axis=-1, keepdims=True)))
    sums = ops.sum(numerators, axis=-1, keepdims=True)
    return ops.cast(numerators, scores.dtype), ops.cast(sums, scores.dtype)


def _masked(scores, mask):
    wide = ops.cast(scores, "float32")
    return wide if mask is None else ops.where(mask, wide, -1e9)
