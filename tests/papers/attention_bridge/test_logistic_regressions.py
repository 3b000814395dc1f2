"""Many logistic regressions at once against scikit-learn's, one by one."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from training.attention_bridge.senteval_linear import logistic_logits


@pytest.mark.parametrize("classes", [2, 4])
@pytest.mark.parametrize("scale", [0.2, 5.0])
def test_equal_scikit_learn_s(classes, scale, random):
    features = (scale * (random.normal(size=(300, 12)) + random.normal(size=12))).astype("float32")
    true = features @ random.normal(size=(12, classes)) / (3 * scale) + random.gumbel(size=(300, classes))
    labels = true.argmax(axis=1)
    targets = labels[:, None] if classes == 2 else np.eye(classes)[labels]
    train = random.random((300, 2)) < 0.7
    strengths = [0.02, 0.5]
    logits = logistic_logits(features, targets, train, strengths, tolerance=1e-9, max_iterations=500)
    assert logits.shape == (300, 2, 2, 1 if classes == 2 else classes)
    for fold in range(2):
        for index, strength in enumerate(strengths):
            model = LogisticRegression(C=strength, tol=1e-9, max_iter=10000)
            model.fit(features[train[:, fold]].astype("float64"), labels[train[:, fold]])
            expected = model.predict_log_proba(features)
            if classes == 2:
                found = np.log(1 / (1 + np.exp(-logits[:, fold, index, 0].astype("float64"))))
                np.testing.assert_allclose(found, expected[:, 1], atol=5e-3)
            else:
                found = logits[:, fold, index] - np.logaddexp.reduce(
                    logits[:, fold, index], axis=1, keepdims=True
                )
                np.testing.assert_allclose(found, expected, atol=5e-3)


def test_targets_may_be_distributions(random):
    """A distribution over two classes is the two classes, weighted."""
    features = random.normal(size=(200, 5)).astype("float32")
    share = random.random(200)
    lower = random.integers(0, 3, 200)
    targets = np.zeros((200, 4))
    targets[np.arange(200), lower], targets[np.arange(200), lower + 1] = 1 - share, share
    logits = logistic_logits(features, targets, np.ones((200, 1), bool), [2.0], tolerance=1e-9)[:, 0, 0]
    model = LogisticRegression(C=2.0, tol=1e-8, max_iter=5000)
    model.fit(
        np.tile(features, (2, 1)).astype("float64"),
        np.concatenate([lower, lower + 1]),
        np.concatenate([1 - share, share]),
    )
    probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(probabilities, model.predict_proba(features), atol=1e-3)
