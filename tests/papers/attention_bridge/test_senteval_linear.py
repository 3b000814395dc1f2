"""SentEval's protocols against the same computation written out with scikit-learn and SciPy."""

import numpy as np
import pytest
import scipy.stats
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score

from training.attention_bridge import senteval_linear
from training.attention_bridge.senteval_linear import (
    cosine_similarity,
    cross_validated_training,
    nested_cross_validation,
    pair_features,
    validated_training,
)


def test_settings_are_sentevals():
    assert senteval_linear.FOLDS == 10
    assert senteval_linear.STRENGTHS == [0.25, 0.5, 1, 2, 4, 8]
    assert senteval_linear.STRENGTHS_WITHOUT_VALIDATION == [0.5, 1, 2, 4, 8, 16, 32]


def examples(random, count: int, classes: int, width: int = 6):
    """Features, and classes that they tell in part."""
    features = random.normal(size=(count, width)).astype("float32") * 0.3
    signal = features @ random.normal(size=(width, classes)) * 5 + random.gumbel(size=(count, classes))
    return features, signal.argmax(axis=1)


def searched(strengths, folds):
    """scikit-learn's own search for the strength."""
    model = LogisticRegression(tol=1e-7, max_iter=5000)
    return GridSearchCV(model, {"C": strengths}, cv=folds)


def test_nested_cross_validation(three_folds, random):
    """With the folds of seed 1111, outer and inner, as SentEval's `InnerKFoldClassifier` has them."""
    features, labels = examples(random, 240, 2)
    found = nested_cross_validation((features, labels))
    folds = StratifiedKFold(3, shuffle=True, random_state=1111)
    expected = cross_val_score(
        searched(senteval_linear.STRENGTHS, folds), features.astype("float64"), labels, cv=folds
    )
    assert found == {"accuracy": [pytest.approx(100 * expected.mean(), abs=100 / 240)]}


@pytest.mark.parametrize("classes", [2, 3])
def test_cross_validated_training(random, classes):
    features, labels = examples(random, 400, classes)
    train, test = (features[:300], labels[:300]), (features[300:], labels[300:])
    found = cross_validated_training(train, test, [1111], f1=classes == 2)
    folds = StratifiedKFold(10, shuffle=True, random_state=1111)
    model = searched(senteval_linear.STRENGTHS_WITHOUT_VALIDATION, folds).fit(*train)
    assert found["accuracy"] == [pytest.approx(100 * model.score(*test), abs=1)]
    if classes == 2:
        assert found["f1"] == [pytest.approx(100 * f1_score(test[1], model.predict(test[0])), abs=1)]


def test_validated_training(random):
    features, labels = examples(random, 500, 3)
    splits = [(features[part], labels[part]) for part in (slice(300), slice(300, 400), slice(400, 500))]
    models = [
        LogisticRegression(C=strength, tol=1e-7, max_iter=5000).fit(*splits[0])
        for strength in senteval_linear.STRENGTHS
    ]
    best = max(models, key=lambda model: model.score(*splits[1]))
    assert validated_training(*splits)["accuracy"] == [pytest.approx(100 * best.score(*splits[2]), abs=1)]


def test_the_strength_does_not_depend_on_the_features_scale(random):
    train, others = (examples(random, count, 3)[0] * 0.1 for count in (300, 5000))
    labels = (10 * train @ random.normal(size=(6, 3)) + random.gumbel(size=(300, 3))).argmax(axis=1)
    peer = LogisticRegression(C=1.0, tol=1e-7, max_iter=5000).fit(train, labels)
    assert (senteval_linear._classifier(train, labels, 1.0)(others) == peer.predict(others)).mean() > 0.99


@pytest.fixture
def fitted(monkeypatch):
    """The number of examples and the strength of each classifier that is trained."""
    found, classifier = [], senteval_linear._classifier

    def recorded(features, labels, strength):
        found.append((len(features), strength))
        return classifier(features, labels, strength)

    monkeypatch.setattr(senteval_linear, "_classifier", recorded)
    return found


def test_the_final_classifier_has_all_examples_and_the_best_strength(random, fitted, monkeypatch):
    def fourth_is_best(features, labels, folds, strengths):
        return np.eye(len(strengths))[[3] * len(folds)]

    monkeypatch.setattr(senteval_linear, "_held_out_accuracy", fourth_is_best)
    train = examples(random, 300, 2)
    cross_validated_training(train, train, [1])
    assert fitted == [(300, senteval_linear.STRENGTHS_WITHOUT_VALIDATION[3])]


def test_validation_is_not_trained_on(random, fitted):
    features, labels = examples(random, 300, 2)
    train, validation, test = ((features[rows], labels[rows]) for rows in np.split(np.arange(300), 3))
    validated_training(train, validation, test)
    assert {count for count, _ in fitted} == {100}


def test_f1_is_of_the_second_class(random):
    features, labels = examples(random, 300, 2)
    first, second = (features[labels == number].mean(axis=0) for number in (0, 1))
    test = np.stack([second, second, second, first]), np.array([1, 1, 0, 0])
    found = cross_validated_training((features, labels), test, [1], f1=True)
    assert found["f1"] == [pytest.approx(80)]


def test_cosine_similarity(random):
    sets = [(random.normal(size=(n, 3)), random.normal(size=(n, 3)), random.random(n)) for n in (20, 60)]
    pearson, spearman = [], []
    for first, second, scores in sets:
        cosines = [u @ v / np.sqrt(u @ u * (v @ v)) for u, v in zip(first, second, strict=True)]
        pearson.append(scipy.stats.pearsonr(cosines, scores)[0])
        spearman.append(scipy.stats.spearmanr(cosines, scores)[0])
    found = cosine_similarity(sets)
    assert found["pearson"] == [pytest.approx(0.25 * pearson[0] + 0.75 * pearson[1])]
    assert found["spearman"] == [pytest.approx(0.25 * spearman[0] + 0.75 * spearman[1])]


def test_equal_vectors_score_zero():
    zeros = np.zeros((5, 2))
    assert cosine_similarity([(zeros, zeros, np.arange(5.0))]) == {"pearson": [0.0], "spearman": [0.0]}


def test_pair_features():
    found = pair_features(np.array([[1.0, -2.0]]), np.array([[3.0, 4.0]]))
    np.testing.assert_array_equal(found, [[2, 6, 3, -8]])
