"""The similarity of positions' encodings and their products in attention: the PoPE paper's Section 2.

Uses only NumPy and SciPy, so that figures need no backend.
"""

import numpy as np
from scipy.special import xlogy

from kzoo.errors import UserError

POSITIONS = 300  # L for the high dimensions: Section 2.2 compares positions 2 and 299


def correlation(encodings: np.ndarray) -> np.ndarray:
    """Return Pearson's correlation of each pair of positions' encodings, with the features as samples.

    The scale of an encoding does not matter: `normalize` does not change PoPE's correlations.

    Args:
        encodings: `(L, D)`.

    Returns:
        `(L, L)`. NaN where an encoding is constant, as PoPE's position 0 is: it has no correlation.
    """
    centred = encodings - encodings.mean(axis=1, keepdims=True)
    size = np.linalg.norm(centred, axis=1, keepdims=True)
    noise = 1e-9 * np.linalg.norm(encodings, axis=1, keepdims=True)  # of rounding a constant encoding
    unit = np.divide(centred, size, out=np.full_like(centred, np.nan), where=size > noise)
    return unit @ unit.T


def mean_by_distance(matrix: np.ndarray) -> np.ndarray:
    """Return the mean of |matrix[i, i + d]| over the positions i, for each distance d.

    Absolute values, because PoPE's correlations change sign from one distance to the next, so their mean is
    near zero even if they are large.

    Args:
        matrix: `(L, L)`, symmetric; NaN (a position without correlation) is skipped.

    Returns:
        `(L,)`, for the distances 0 … L - 1; NaN where all values are NaN.
    """
    means = np.full(len(matrix), np.nan)
    for distance in range(len(matrix)):
        pairs = np.abs(np.diagonal(matrix, distance))
        pairs = pairs[~np.isnan(pairs)]
        if len(pairs):
            means[distance] = pairs.mean()
    return means


def mutual_information(encodings: np.ndarray, num_bins: int = 8) -> np.ndarray:
    """Return the mutual information of each pair of positions' encodings, by histogram.

    An encoding's features are samples of one variable, counted in bins of equal width between its smallest
    and largest value: I(a; b) = H(a) + H(b) - H(a, b), with entropies of the counted frequencies. The
    estimate is too high, for independent variables by about (bins - 1)^2 / (2 D): 0.05 nats for 8 bins and
    512 features (0.22 for 16 bins). Hence so few bins.

    Args:
        encodings: `(L, D)`.
        num_bins: bins of each variable.

    Returns:
        `(L, L)`, nats; on the diagonal the entropies, at most ln(`num_bins`). A constant encoding has 0.
    """
    low = encodings.min(axis=1, keepdims=True)
    spread = np.ptp(encodings, axis=1, keepdims=True)
    place = (encodings - low) / np.where(spread > 0, spread, 1)  # 0 … 1
    bins = np.minimum((place * num_bins).astype("int32"), num_bins - 1)
    inside = (bins == np.arange(num_bins)[:, None, None]).astype("float32")  # (bins, L, D)

    frequency = inside.mean(axis=-1, dtype="float64")  # (bins, L)
    entropy = -xlogy(frequency, frequency).sum(axis=0)
    information = entropy[:, None] + entropy[None, :]
    # One pair of bins at a time, to use the memory of the result, not bins² times as much.
    for first in inside:
        for second in inside:
            together = (first @ second.T).astype("float64") / encodings.shape[1]  # (L, L)
            information += xlogy(together, together)
    return np.maximum(information, 0)  # rounding leaves -1e-16 where it is zero


def first_high_dimension(encodings: np.ndarray, threshold: float) -> int:
    """Return the first feature of the high dimensions, over which positions correlate.

    It is the smallest i for which the mean |correlation| of all pairs of positions, over the features
    i … D - 1, is at least `threshold`. The paper separates low and high dimensions by such a threshold
    (Eq. 6), whose value we do not know.

    Args:
        encodings: `(L, D)`.
        threshold: mean |correlation|, between 0 and 1.

    Raises:
        UserError: no range of four or more features reaches the threshold.
    """
    pairs = np.triu_indices(len(encodings), 1)
    for first in range(encodings.shape[1] - 3):
        if np.nanmean(np.abs(correlation(encodings[:, first:])[pairs])) >= threshold:
            return first
    raise UserError(f"no features of these encodings correlate by {threshold:g}: choose a lower threshold")


def position_products(
    encodings: np.ndarray, query: np.ndarray, key: np.ndarray, first_high: int
) -> dict[str, np.ndarray]:
    """Return what two positions alone add to attention scores in each head, in all and by dimensions.

        p_mᵀ W_qᵀ W_k p_n / sqrt(d)                                      (the last term of Eq. 4)

    With p in two blocks, low and high dimensions (Eq. 6), it is the sum of low with low, high with high
    (Eq. 9 and 10), and low with high and high with low, which the paper leaves out.

    Args:
        encodings: `(L, D)`. p, as it enters the attention.
        query, key: `(D, H, d)`. The kernels of the queries and of the keys.
        first_high: first feature of the high dimensions.

    Returns:
        `(H, L, L)` for `"all"`, `"low"`, `"high"` and `"low × high"`: query position m, key position n.
    """

    def product(features: slice) -> np.ndarray:
        q, k = (np.einsum("li,ihd->hld", encodings[:, features], w[features]) for w in (query, key))
        return q @ k.swapaxes(1, 2) / np.sqrt(query.shape[-1])

    parts = {part: product(features) for part, features in blocks(first_high).items()}
    return {**parts, "low × high": parts["all"] - parts["low"] - parts["high"]}


def blocks(first_high: int) -> dict[str, slice]:
    """Return the features of all, of the low and of the high dimensions."""
    return {"all": slice(None), "low": slice(first_high), "high": slice(first_high, None)}
