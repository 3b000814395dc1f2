"""What tests of the papers' sizes share."""

import keras
import pytest


@pytest.fixture
def zeros(monkeypatch):
    """Matrices of zeros: only sizes count, and an orthogonal one of a base model takes a second."""
    for kind in (keras.initializers.Orthogonal, keras.initializers.VarianceScaling):
        monkeypatch.setattr(kind, "__call__", lambda self, shape, dtype=None: keras.ops.zeros(shape, dtype))
