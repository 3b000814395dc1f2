"""What tests of SentEval share."""

import pytest

from training.attention_bridge import senteval_linear


@pytest.fixture
def three_folds(monkeypatch):
    """Three folds instead of ten: each trains its own classifiers."""
    monkeypatch.setattr(senteval_linear, "FOLDS", 3)
