"""Position encodings as NumPy tables, for layers, figures and engines without Keras."""

import numpy as np
from numpy.polynomial.legendre import legvander


def pope_table(max_length: int, width: int, first_order: int = 0, normalize: bool = False) -> np.ndarray:
    """Return the encodings of `kzoo.layers.PoPEEmbedding`, `(max_length, width)`, float64."""
    # By Bonnet's recurrence, which is stable on [-1, 1]: the error is below 1e-12 for the first 1,024 orders.
    table = legvander(-1 + 2 * np.arange(width) / width, first_order + max_length - 1).T
    if normalize:
        order = np.arange(len(table))[:, None]
        table *= np.sqrt((2 * order + 1) / 2)
    return table[first_order:]


def sine_table(
    max_length: int, width: int, max_wavelength: float = 10_000, first_position: int = 0
) -> np.ndarray:
    """Return the encodings of `kzoo.layers.SinePositions`, `(max_length, width)`, float64."""
    features = np.arange(width)
    angles = (first_position + np.arange(max_length))[:, None] * (1 / max_wavelength) ** (
        2 * (features // 2) / width
    )
    return np.where(features % 2, np.cos(angles), np.sin(angles))
