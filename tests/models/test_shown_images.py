"""Which image is shown with each sentence."""

from types import SimpleNamespace

import numpy as np
import pytest

from kzoo.errors import UserError
from kzoo.models.images import GREY, shown_images

READER = SimpleNamespace(image_shape=(2,), extractor=None)
FEATURES = np.arange(200.0).reshape(100, 2)


def test_right_shuffled_or_none():
    np.testing.assert_array_equal(shown_images(READER, FEATURES, 100), FEATURES)
    assert (shown_images(READER, FEATURES, 100, "none") == 0).all()
    shuffled = shown_images(READER, FEATURES, 100, "shuffled")
    np.testing.assert_array_equal(shuffled[np.argsort(shuffled[:, 0])], FEATURES)
    assert (shuffled != FEATURES).any(axis=1).sum() > 90
    np.testing.assert_array_equal(shown_images(READER, FEATURES, 100, "shuffled"), shuffled)
    pictures, reader = np.zeros((3, 4, 4, 3), "uint8"), SimpleNamespace(image_shape=(4, 4, 3), extractor=None)
    assert (shown_images(reader, pictures, 3, "none") == GREY).all()


def test_another_word_is_named():
    with pytest.raises(UserError, match="shown is one of right, shuffled, none, not 'wrong'"):
        shown_images(READER, FEATURES, 100, "wrong")
