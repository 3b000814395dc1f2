"""The masked softmax of all attention layers of the zoo."""

from keras import ops


def masked_softmax(scores, mask=None):
    """Return the softmax over the last axis: computed in float32, returned in the scores' dtype.

    Args:
        scores: `(…, N)`.
        mask: bool, broadcast to `(…, N)`. Entries at `False` get weight 0; a row that is `False` throughout
            gets uniform weights. All are `True` by default.
    """
    wide = ops.cast(scores, "float32")
    if mask is not None:
        wide = ops.where(mask, wide, -1e9)
    return ops.cast(ops.softmax(wide, axis=-1), scores.dtype)
