"""SentEval's network: its parts, and that it learns what a linear classifier cannot."""

import inspect
import itertools
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from training.attention_bridge import senteval_networks
from training.attention_bridge.senteval_networks import _Batches, _Looks, _network, probe


def test_settings_are_sentevals():
    settings = senteval_networks
    assert settings.STRENGTHS == [1e-5, 1e-4, 1e-3, 1e-2]
    assert (settings.BATCH_SIZE, settings.PROBE_PASSES, settings.PROBE_MISSES) == (64, 4, 6)
    defaults = {name: value.default for name, value in inspect.signature(probe).parameters.items()}
    assert (defaults["hidden_units"], defaults["dropout"], defaults["looks"]) == (200, 0.1, 51)
    assert (defaults["strengths"], defaults["passes"]) == (settings.STRENGTHS, settings.PROBE_PASSES)


def split(random, count):
    """Points, and whether their two coordinates have the same sign."""
    points = random.uniform(-6, 6, size=(count, 2)).astype("float32")
    return points.__getitem__, (points.prod(axis=1) > 0).astype(int)


def test_learns_what_no_linear_classifier_can(random):
    splits = [split(random, count) for count in (3200, 400, 400)]
    assert probe(*splits, seeds=[1], strengths=[1e-5])["accuracy"][0] > 85
    assert probe(*splits, seeds=[1], hidden_units=0, strengths=[1e-5])["accuracy"][0] < 65


class Fixed:
    """A network of fixed accuracies, on the validation set and on the test set."""

    def __init__(self, validation, test):
        self.validation, self.test = validation, test

    def get_weights(self):
        return []

    def set_weights(self, weights):
        pass

    def fit(self, batches, callbacks, **options):
        (looked,) = callbacks
        looked.set_model(self)
        looked.on_epoch_end(0, {"val_accuracy": self.validation})
        looked.on_train_end()

    def evaluate(self, batches, **options):
        return {"accuracy": self.test}


@pytest.fixture
def networks(monkeypatch):
    """Function that lets `probe` train what it makes of a regularization."""
    return lambda make: monkeypatch.setattr(senteval_networks, "_network", lambda *values: make(values[-2]))


@pytest.mark.parametrize("strengths", list(itertools.permutations([1e-5, 1e-4, 1e-3])))
def test_the_validation_set_chooses_among_the_strengths(strengths, random, networks):
    accuracies = {1e-5: (0.6, 0.9), 1e-4: (0.8, 0.7), 1e-3: (0.5, 0.3)}
    networks(lambda strength: Fixed(*accuracies[strength]))
    found = probe(*[split(random, 4)] * 3, seeds=[1, 2], strengths=list(strengths))
    assert found == {"accuracy": [70, 70]}


def test_the_first_of_equally_good_strengths_is_chosen(random, networks):
    accuracies = {1e-5: (0.6, 0.5), 1e-4: (0.8, 0.7), 1e-3: (0.8, 0.9)}
    networks(lambda strength: Fixed(*accuracies[strength]))
    assert probe(*[split(random, 4)] * 3, seeds=[1], strengths=list(accuracies)) == {"accuracy": [70]}


def test_every_split_is_used_for_what_it_is_for(random, networks):
    used = []

    class Noting(Fixed):
        def fit(self, batches, validation_data, epochs, **options):
            used.append((epochs, batches.labels, batches.batches, validation_data.labels))
            super().fit(batches, **options)

        def evaluate(self, batches, **options):
            used[-1] += (batches.labels,)
            return super().evaluate(batches)

    networks(lambda _: Noting(0.5, 0.5))
    train, validation, test = (split(random, count) for count in (150, 5, 6))
    probe(train, validation, test, seeds=[1, 2], strengths=[1e-5], passes=2, looks=3)
    for epochs, trained, _, validated, tested in used:
        assert epochs == 3
        assert (trained is train[1], validated is validation[1], tested is test[1]) == (True, True, True)
    first, second = (np.concatenate(batches) for _, _, batches, *_ in used)
    assert (first != second).any()  # each seed has its order
    assert (first[:150] != first[150:]).any() and (first[:150] != np.arange(150)).any()


def test_a_seed_decides_the_first_weights_and_the_dropout(random):
    x = random.normal(size=(64, 6)).astype("float32")

    def made(seed):
        keras.utils.set_random_seed(int(random.integers(1000)))  # as in a program that draws before
        model = _network(3, 200, 0.5, 0.0, seed)
        dropped = ops.convert_to_numpy(model(x, training=True))
        return model.get_weights()[0], dropped

    first, again, other = made(1), made(1), made(2)
    for one, same, different in zip(first, again, other, strict=True):
        np.testing.assert_array_equal(one, same)
        assert np.abs(one - different).max() > 0.01


def test_network_is_its_formula(random):
    model = _network(3, 200, 0.1, 0.5, seed=1)
    x = random.normal(size=(4, 6)).astype("float32")
    logits = ops.convert_to_numpy(model(x))
    assert [type(layer).__name__ for layer in model.layers] == ["Dense", "Dropout", "Activation", "Dense"]
    w1, b1, w2, b2 = (ops.convert_to_numpy(w) for w in model.weights)
    assert w1.shape == (6, 200)
    np.testing.assert_allclose(logits, 1 / (1 + np.exp(-(x @ w1 + b1))) @ w2 + b2, atol=1e-5)
    # Half the squared norm, so that its gradient is SentEval's weight decay.
    penalty = sum(float(ops.convert_to_numpy(loss)) for loss in model.losses)
    np.testing.assert_allclose(penalty, 0.5 * sum((w**2).sum() for w in (w1, b1, w2, b2)) / 2, rtol=1e-5)
    assert model.layers[1].rate == 0.1


def test_misses_are_counted_over_better_looks():
    """SentEval's count is never begun anew, and ends training at the look after its fifth."""
    kept = []
    model = SimpleNamespace(stop_training=False, weights=0, set_weights=kept.append)
    model.get_weights = lambda: model.weights
    looks = _Looks()
    looks.set_model(model)
    for model.weights, accuracy in enumerate([0.5, 0.4, 0.6, 0.6, 0.5, 0.7, 0.6, 0.6, 0.6, 0.9]):
        looks.on_epoch_end(model.weights, {"val_accuracy": accuracy})
        if model.stop_training:
            break
    looks.on_train_end()
    assert (model.weights, kept, looks.best) == (8, [5], 0.7)


def test_batches_pass_over_all_rows():
    labels = np.arange(150) % 3
    batches = _Batches((lambda rows: rows[:, None], labels), seed=5, passes=4)
    seen = np.concatenate([batches[i][0][:, 0] for i in range(len(batches))])
    assert len(batches) == 4 * 3
    assert (np.bincount(seen) == 4).all()
    first = batches.batches[0]
    batches.on_epoch_end()
    assert (first != batches.batches[0]).any()
    assert isinstance(batches, keras.utils.PyDataset)
