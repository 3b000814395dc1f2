"""SentEval's PyTorch variant against a plain program that trains one regression after the other."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from training.attention_bridge import senteval, senteval_linear, senteval_pytorch
from training.attention_bridge.senteval_pytorch import cross_validated_training, nested_cross_validation

REGULARIZATIONS = [3.0, 0.3, 0.03, 1e-4]  # the best differs between folds here; SentEval's are all weak


class Regression:
    """SentEval's `MLP` without hidden units: `fit` and `score` as there, one example and weight at a time."""

    def __init__(self, width, classes, l2, seed):
        draw = np.random.default_rng(seed)
        self.w = draw.uniform(-(width**-0.5), width**-0.5, (width + 1, classes)).astype("float32")
        self.m, self.v, self.t, self.l2 = 0 * self.w, 0 * self.w, 0, l2
        self.permutation = np.random.default_rng(seed).permutation

    def fit(self, x, y, dev_x, dev_y):
        best, stop, misses, epoch = -1, False, 0, 0
        while not stop and epoch <= 200:
            for _ in range(4):
                order = self.permutation(len(x))
                for start in range(0, len(x), 64):
                    self.update(x[order[start : start + 64]], y[order[start : start + 64]])
            epoch += 4
            accuracy = self.score(dev_x, dev_y)
            if accuracy > best:
                best, kept = accuracy, self.w.copy()
            else:
                stop = misses >= 5
                misses += 1
        self.w = kept
        return self

    def update(self, x, y):
        gradient = np.zeros(self.w.shape)
        for row, label in zip(np.c_[x, np.ones(len(x))], y, strict=True):
            e = np.exp(row @ self.w)
            gradient += np.outer(row, e / e.sum() - np.eye(len(e))[label]) / len(x)
        gradient += self.l2 * self.w  # weight_decay
        self.t += 1
        self.m = 0.9 * self.m + 0.1 * gradient
        self.v = 0.999 * self.v + 0.001 * gradient**2
        corrected = self.m / (1 - 0.9**self.t), self.v / (1 - 0.999**self.t)
        self.w = self.w - 1e-3 * corrected[0] / (corrected[1] ** 0.5 + 1e-8)

    def predict(self, x):
        return np.argmax(np.c_[x, np.ones(len(x))] @ self.w, axis=1)

    def score(self, x, y):
        return np.mean(self.predict(x) == y)


def split(x, y, seed):
    """`validation_split=0.05`: the first twentieth of a permutation is held out."""
    order = np.random.default_rng(seed).permutation(len(x))
    count = int(0.05 * len(x))
    return x[order[count:]], y[order[count:]], x[order[:count]], y[order[:count]]


def best_l2(x, y, folds, classes, seed):
    means = []
    for l2 in REGULARIZATIONS:
        found = [
            Regression(x.shape[1], classes, l2, seed).fit(x[a], y[a], x[b], y[b]).score(x[b], y[b])
            for a, b in folds.split(x, y)
        ]
        means.append(round(100 * np.mean(found), 2))
    return REGULARIZATIONS[np.argmax(means)]


@pytest.fixture
def data(three_folds, random, monkeypatch):
    """Noisy examples of three unequal classes, in three folds."""
    monkeypatch.setattr(senteval_pytorch, "STRENGTHS", REGULARIZATIONS)
    labels = random.choice(3, 260, p=[0.5, 0.3, 0.2])
    return (0.4 * np.eye(3, 6)[labels] + 0.5 * random.normal(size=(260, 6))).astype("float32"), labels


def test_settings_are_sentevals():
    settings = senteval_pytorch
    assert settings.STRENGTHS == [1e-5, 1e-4, 1e-3, 1e-2]
    assert (settings.LOOKS, settings.PROBE_PASSES, settings.PROBE_MISSES, settings.BATCH_SIZE) == (
        51,
        4,
        6,
        64,
    )


def test_nested_cross_validation_is_that_of_a_plain_program(data):
    x, y = data
    folds, results = StratifiedKFold(3, shuffle=True, random_state=1111), []
    for train, test in folds.split(x, y):
        l2 = best_l2(x[train], y[train], folds, 3, seed=7)
        fitted = Regression(6, 3, l2, 7).fit(*split(x[train], y[train], 7))
        results.append(round(100 * fitted.score(x[test], y[test]), 2))
    assert nested_cross_validation(data, [7]) == {"accuracy": [pytest.approx(np.mean(results))]}


def test_cross_validated_training_is_that_of_a_plain_program(data):
    x, y = data
    y = np.minimum(y, 1)
    train, test, found = slice(0, 160), slice(160, 260), {"accuracy": [], "f1": []}
    for seed in (7, 8):
        folds = StratifiedKFold(3, shuffle=True, random_state=seed)
        l2 = best_l2(x[train], y[train], folds, 2, seed)
        predicted = Regression(6, 2, l2, seed).fit(*split(x[train], y[train], seed)).predict(x[test])
        true = y[test]
        hits, wrong = np.sum(predicted & true), np.sum(predicted != true)
        found["accuracy"].append(pytest.approx(100 * np.mean(predicted == true)))
        found["f1"].append(pytest.approx(100 * 2 * hits / (2 * hits + wrong)))
    assert cross_validated_training((x[train], y[train]), (x[test], y[test]), [7, 8], f1=True) == found


def test_weights_are_those_of_a_plain_program(data):
    """Of sets of different sizes, one of which has fewer batches, and of different regularization."""
    x, y = data
    sets = [(np.arange(0, 100), np.arange(100, 130)), (np.arange(30, 90), np.arange(0, 30))]
    strengths = np.array([[1e-5, 1.0], [0.1, 1e-2]])
    weights, accuracy = senteval_pytorch.train_regressions(x, y, sets, strengths, seed=5, looks=3)
    for p, (train, held_out) in enumerate(sets):
        for s, l2 in enumerate(strengths[p]):
            plain, best = Regression(6, 3, l2, 5), -1
            for _ in range(3):
                for _ in range(4):
                    order = train[plain.permutation(len(train))]
                    for start in range(0, len(order), 64):
                        plain.update(x[order[start : start + 64]], y[order[start : start + 64]])
                if plain.score(x[held_out], y[held_out]) > best:
                    best, kept = plain.score(x[held_out], y[held_out]), plain.w
            np.testing.assert_allclose(weights[p, :, s], kept, rtol=1e-4, atol=1e-5)
            assert accuracy[p, s] == pytest.approx(best)


@pytest.mark.parametrize("task", ["MR", "TREC", "MRPC", "SST-2"])
def test_the_variant_of_a_task_is_chosen(task, monkeypatch):
    called, names = [], ("nested_cross_validation", "cross_validated_training", "validated_training")

    def noted(module):
        return lambda *_, **__: called.append(module) or {"accuracy": [0.0]}

    for module in (senteval_linear, senteval_pytorch):
        for name in names:
            monkeypatch.setattr(module, name, noted(module), raising=False)
    monkeypatch.setattr(senteval, "probe", noted(senteval_pytorch))
    examples = senteval.Examples((["a", "b"],) * (2 if task == "MRPC" else 1), [0, 1])
    splits = dict.fromkeys(("all", "train", "val", "test"), examples)
    for pytorch in (False, True):
        senteval.evaluate_task(lambda texts: np.eye(len(texts)), task, splits, [1], pytorch)
    assert called == [senteval_linear, senteval_pytorch]
