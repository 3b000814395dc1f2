"""The masked softmax against SciPy's of the entries that are left."""

import numpy as np
from keras import ops
from scipy.special import softmax

from kzoo.layers.multi_head_attention import masked_exponentials, masked_softmax


def test_equals_scipy_s_of_what_is_left(random):
    scores, mask = random.normal(size=(2, 3, 5)).astype("float32"), np.array([1, 1, 0, 1, 0], bool)
    found = ops.convert_to_numpy(masked_softmax(scores, mask))
    np.testing.assert_allclose(found[..., mask], softmax(scores[..., mask], axis=-1), atol=1e-6)
    np.testing.assert_array_equal(found[..., ~mask], 0)
    np.testing.assert_allclose(
        ops.convert_to_numpy(masked_softmax(scores)), softmax(scores, axis=-1), atol=1e-6
    )


def test_the_division_can_come_later(random):
    scores, mask = 50 * random.normal(size=(2, 3, 5)).astype("float32"), np.array([1, 1, 0, 1, 0], bool)
    numerators, sums = (ops.convert_to_numpy(part) for part in masked_exponentials(scores, mask))
    assert numerators.max() == 1
    np.testing.assert_array_equal(numerators[..., ~mask], 0)
    np.testing.assert_allclose((numerators / sums)[..., mask], softmax(scores[..., mask], axis=-1), atol=1e-6)


def test_a_row_of_nothing_is_even_and_half_precision_stays():
    found = masked_softmax(ops.cast([[1.0, 5.0, 9.0, 2.0]], "bfloat16"), np.zeros((1, 4), bool))
    assert "bfloat16" in str(found.dtype)
    np.testing.assert_array_equal(ops.convert_to_numpy(ops.cast(found, "float32")), np.full((1, 4), 0.25))
