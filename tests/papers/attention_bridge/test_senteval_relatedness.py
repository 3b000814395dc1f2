"""SentEval's regression: its steps against Keras's Adam, its targets, when it stops, and that it learns."""

import keras
import numpy as np
import pytest
import scipy.stats

from training.attention_bridge import senteval_networks
from training.attention_bridge.senteval_networks import SoftmaxLayer, relatedness, score_distributions


def linear(random):
    """Splits of features and of scores from 1 to 5 that are linear in them, but for a little noise."""
    features = random.normal(size=(900, 6)).astype("float32")
    scores = np.clip(3 + features @ [0.8, -0.5, 0.3, 0, 0, 0] + random.normal(size=900) * 0.1, 1, 5)
    return [(features[part], scores[part]) for part in (slice(500), slice(500, 700), slice(700, 900))]


def test_settings_are_sentevals():
    settings = senteval_networks
    assert settings.VALUES.tolist() == [1, 2, 3, 4, 5]
    assert (settings.BATCH_SIZE, settings.PASSES, settings.LOOKS, settings.MISSES) == (64, 50, 21, 4)


def test_targets_have_the_score_as_their_mean():
    found = score_distributions(np.array([1, 2.25, 4.9, 5, 0.4, 0]))
    expected = [
        [1, 0, 0, 0, 0],
        [0, 0.75, 0.25, 0, 0],
        [0, 0, 0, 0.1, 0.9],
        [0, 0, 0, 0, 1],
        [0.4, 0, 0, 0, 0],  # below 1, as SentEval has it
        [0, 0, 0, 0, 0],
    ]
    np.testing.assert_allclose(found, expected, atol=1e-6)


def test_steps_are_those_of_keras(random):
    features = random.normal(size=(8, 16, 4)).astype("float32")
    targets = score_distributions(random.uniform(0, 5, 8 * 16)).reshape(8, 16, 5)
    layer = SoftmaxLayer(4, random)
    assert max(np.abs(weight).max() for weight in layer.weights) <= 0.5  # 1 / sqrt(F), as in PyTorch
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(5, "softmax")])
    model.compile(keras.optimizers.Adam(1e-3, epsilon=1e-8), loss="mse")
    model.set_weights(layer.weights)
    for x, y in zip(features, targets, strict=True):
        np.testing.assert_allclose(layer(x), model.predict_on_batch(x), atol=1e-5)
        layer.step(x, y)
        model.train_on_batch(x, y)
    for found, expected in zip(layer.weights, model.get_weights(), strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-5)


def test_what_is_linear_is_learned_whatever_the_scale_of_the_features(random):
    train, validation, test = linear(random)
    found = relatedness(train, validation, test, [1111, 1112])
    least_squares = np.linalg.lstsq(np.c_[train[0], np.ones(500)], train[1], rcond=None)[0]
    known = scipy.stats.pearsonr(np.c_[test[0], np.ones(200)] @ least_squares, test[1])[0]
    assert known > 0.98
    assert found["pearson"] == [pytest.approx(known, abs=0.01)] * 2
    assert min(found["spearman"]) > 0.97
    assert max(found["mse"]) < 0.05
    assert found["pearson"][0] != found["pearson"][1]
    scaled = relatedness(*[(10 * features, scores) for features, scores in (train, validation, test)], [1111])
    assert scaled["pearson"][0] == pytest.approx(found["pearson"][0], abs=0.005)


def test_equal_true_scores_correlate_with_nothing(random):
    train, validation, test = linear(random)
    equal = [(features, np.full_like(scores, 3)) for features, scores in (validation, test)]
    found = relatedness(train, *equal, [1111])
    assert (found["pearson"], found["spearman"]) == ([0], [0])


def test_the_best_of_the_looks_counts_and_the_fourth_miss_ends_training(random, monkeypatch):
    splits = linear(random)
    looks = [0.1, 0.3, 0.2, 0.3, 0.4, 0.1, 0.4, 0.9]
    seen = []

    def correlation(measure, predicted, scores):
        seen.append(predicted)
        return looks[len(seen) - 1]

    monkeypatch.setattr(senteval_networks, "correlation", correlation)
    trained = senteval_networks._trained(splits[0], splits[1], seed=1)
    assert len(seen) == 7
    np.testing.assert_array_equal(trained(splits[1][0]), seen[4])


def test_every_pass_has_all_examples_in_an_order_of_its_own(random, monkeypatch):
    train, validation, _ = linear(random)
    train = np.repeat(np.arange(500.0)[:, None], 2, axis=1), train[1]  # the features tell the row
    rows = []
    monkeypatch.setattr(SoftmaxLayer, "step", lambda layer, features, targets: rows.extend(features[:, 0]))
    senteval_networks._trained(train, (validation[0][:, :2], validation[1]), seed=1, passes=2, looks=1)
    passes = np.array(rows).reshape(2, 500)
    np.testing.assert_array_equal(np.sort(passes, axis=1), [np.arange(500)] * 2)
    assert (passes[0] != passes[1]).any() and (passes[0] != np.arange(500)).any()


def test_the_test_set_is_only_scored(random, monkeypatch):
    train, validation, test = linear(random)
    test = test[0], np.exp(test[0][:, 0] + test[0][:, 1])  # of which ranks tell more than a line
    trained = []

    def identity(*arguments):
        trained.append(arguments)
        return lambda features: features[:, 0]

    monkeypatch.setattr(senteval_networks, "_trained", identity)
    found = relatedness(train, validation, test, [1111])
    assert trained == [(train, validation, 1111)]
    predicted = test[0][:, 0]
    assert found["pearson"] == [pytest.approx(np.corrcoef(predicted, test[1])[0, 1])]
    ranks = [np.argsort(np.argsort(values)) for values in (predicted, test[1])]
    assert found["spearman"] == [pytest.approx(np.corrcoef(*ranks)[0, 1])]
    assert found["mse"] == [pytest.approx(((predicted - test[1]) ** 2).mean())]
