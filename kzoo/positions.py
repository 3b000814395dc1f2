"""Position encodings as NumPy tables, for layers, figures and engines without Keras."""

import numpy as np


def legendre_table(num_orders: int, num_points: int) -> np.ndarray:
    """Return P_n(x_i) for n = 0 … `num_orders` - 1 and x_i = -1 + 2 i / `num_points`, by Bonnet's recurrence.

    (n + 1) P_{n+1}(x) = (2n + 1) x P_n(x) - n P_{n-1}(x), which is stable on [-1, 1]: the error is below
    1e-12 for the first 1,024 orders.

    Returns:
        `(num_orders, num_points)`, float64.
    """
    x = -1 + 2 * np.arange(num_points) / num_points
    table = np.ones((num_orders, num_points))
    if num_orders > 1:
        table[1] = x
    for n in range(1, num_orders - 1):
        table[n + 1] = ((2 * n + 1) * x * table[n] - n * table[n - 1]) / (n + 1)
    return table


def pope_table(max_length: int, width: int, first_order: int = 0, normalize: bool = False) -> np.ndarray:
    """Return the encodings of `kzoo.layers.PoPEEmbedding`, `(max_length, width)`, float64."""
    table = legendre_table(first_order + max_length, width)
    if normalize:
        order = np.arange(len(table))[:, None]
        table *= np.sqrt((2 * order + 1) / 2)
    return table[first_order:]


def sine_table(max_length: int, width: int, max_wavelength: float = 10_000) -> np.ndarray:
    """Return the encodings of `keras_hub.layers.SinePositionEncoding`, `(max_length, width)`, float64."""
    features = np.arange(width)
    angles = np.arange(max_length)[:, None] * (1 / max_wavelength) ** (2 * (features // 2) / width)
    return np.where(features % 2, np.cos(angles), np.sin(angles))
