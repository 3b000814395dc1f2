"""What all tests share: quiet backends, fixed seeds, and where the real data is."""

import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import pytest


@pytest.fixture
def random():
    """A seeded NumPy generator."""
    import numpy as np

    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def multi30k():
    """The real Multi30k, where it is."""
    from kzoo.data import open_corpus

    if not os.environ.get("KZOO_DATA"):
        pytest.skip("set KZOO_DATA to a folder with multi30k/ to run this test on real data")
    return open_corpus("multi30k")
