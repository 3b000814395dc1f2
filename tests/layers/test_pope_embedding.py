"""PoPE against SciPy, Rodrigues' formula, quadrature, the recurrence and the Jacobi matrix."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from scipy.special import eval_legendre

from kzoo.layers import PoPEEmbedding


def encoding(length, width, **arguments):
    """Return the encodings of positions 0 … length - 1."""
    layer = PoPEEmbedding(**{"max_length": length, **arguments})
    return ops.convert_to_numpy(layer(np.zeros((1, length, width), "float32")))[0]


def points(width):
    return -1 + 2 * np.arange(width) / width


def test_behaves_as_a_layer(random, tmp_path):
    check_layer(PoPEEmbedding(16), {"inputs": random.normal(size=(2, 5, 8)).astype("float32")}, tmp_path)


@pytest.mark.parametrize("width", [128, 512])
def test_equals_scipy_at_1024_positions(width):
    expected = eval_legendre(np.arange(1024)[:, None], points(width)[None])
    np.testing.assert_allclose(encoding(1024, width), expected, atol=1e-6)


def test_does_not_depend_on_the_table_s_length():
    np.testing.assert_array_equal(encoding(20, 64), encoding(20, 64, max_length=1024))


def test_low_orders_are_rodrigues_formula():
    """Eq. 12: P_n(x) = 1 / (2^n n!) d^n/dx^n (x² - 1)^n, with polynomials differentiated by NumPy."""
    table = encoding(8, 32)
    for n in range(8):
        polynomial = np.polynomial.Polynomial([-1, 0, 1]) ** n
        derivative = polynomial.deriv(n) if n else polynomial
        scale = 2.0**n * np.prod(np.arange(1, n + 1))
        np.testing.assert_allclose(table[n], derivative(points(32)) / scale, atol=1e-6)


def test_polynomials_are_orthogonal():
    """Eq. 13: ∫ P_m P_n = 2/(2n + 1) δ_mn. The integrals, exact by Gauss–Legendre quadrature, of the
    polynomials through the layer's values at 16 points."""
    table = encoding(8, 16).astype("float64")
    interpolants = np.polynomial.polynomial.polyfit(points(16), table.T, deg=7)
    nodes, weights = np.polynomial.legendre.leggauss(16)
    values = np.polynomial.polynomial.polyval(nodes, interpolants)
    np.testing.assert_allclose((values * weights) @ values.T, np.diag(2 / (2 * np.arange(8) + 1)), atol=1e-4)


def test_neighbouring_positions_obey_the_recurrence():
    """Eq. 15: (n + 1) P_{n+1} = (2n + 1) x P_n - n P_{n-1}."""
    table, x = encoding(200, 64).astype("float64"), points(64)
    n = np.arange(1, 199)[:, None]
    residual = (n + 1) * table[2:] - (2 * n + 1) * x * table[1:-1] + n * table[:-2]
    np.testing.assert_allclose(residual / n, 0, atol=1e-6)


def test_roots_are_eigenvalues_of_the_jacobi_matrix():
    """Eq. 16: the roots of P_n are the eigenvalues of the matrix with n/sqrt(4n² - 1) beside the diagonal."""
    order, width = 12, 4096
    k = np.arange(1, order)
    beside = k / np.sqrt(4 * k**2 - 1)
    roots = np.linalg.eigvalsh(np.diag(beside, 1) + np.diag(beside, -1))
    row = encoding(order + 1, width)[order]
    changes = points(width)[:-1][np.sign(row[:-1]) != np.sign(row[1:])]
    np.testing.assert_allclose(changes, roots, atol=2 / width)


def test_normalized_has_the_root_mean_square_of_sine_at_every_position():
    table = encoding(64, 4096, normalize=True)
    np.testing.assert_allclose(np.sqrt((table**2).mean(1)), np.sqrt(0.5), rtol=0.02)
    expected = encoding(64, 4096) * np.sqrt((2 * np.arange(64) + 1) / 2)[:, None]
    np.testing.assert_allclose(table, expected, rtol=1e-5)


@pytest.mark.parametrize("normalize", [False, True])
def test_first_order_shifts_the_polynomials(normalize):
    found, expected = (encoding(n, 32, normalize=normalize, first_order=11 - n) for n in (10, 11))
    np.testing.assert_allclose(found, expected[1:], atol=1e-7)


def test_start_index_and_positions():
    layer, table = PoPEEmbedding(32), encoding(32, 16)
    x = np.zeros((2, 4, 16), "float32")
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, start_index=7))[1], table[7:11])
    positions = np.array([[3, 1, 0, 2], [9, 9, 31, 0]], "int32")
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, positions=positions)), table[positions])


@pytest.mark.parametrize("start", [0, 5, np.int64(5), np.array(5), ops.convert_to_tensor(5)], ids=str)
def test_too_long_names_both_lengths(start):
    layer, length = PoPEEmbedding(8), 9 - int(start)
    with pytest.raises(ValueError, match="max_length=8"):
        layer(np.zeros((1, length, 16), "float32"), start_index=start)
    fits = layer(np.zeros((1, length - 1, 16), "float32"), start_index=start)
    np.testing.assert_array_equal(ops.convert_to_numpy(fits)[0], encoding(8, 16)[int(start) :])


def test_a_start_known_only_in_the_computation():
    start, x = keras.Input((), batch_size=1, dtype="int32"), keras.Input((3, 16), batch_size=1)
    model = keras.Model([x, start], PoPEEmbedding(8)(x, start_index=start))
    found = model.predict_on_batch([np.zeros((1, 3, 16), "float32"), np.array([4], "int32")])
    np.testing.assert_array_equal(found[0], encoding(8, 16)[4:7])
