"""The recurrent encoder against LSTM and GRU written in NumPy, a sentence at a time."""

import gc

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops

from kzoo.layers import RecurrentEncoder

MASK = np.array([[1, 1, 1, 1, 1], [1, 1, 0, 0, 0]], bool)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_cell(x, h, c, weights):
    """Return h and c after one word (Hochreiter and Schmidhuber 1997, with forget gate), in Keras's order."""
    kernel, recurrent, bias = weights
    i, f, g, o = np.split(x @ kernel + h @ recurrent + bias, 4, axis=-1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


def lstm(x, weights):
    """Return h at each word of a sentence `(n, E)`."""
    h = c = np.zeros(len(weights[1]))
    found = []
    for word in x:
        h, c = lstm_cell(word, h, c, weights)
        found.append(h)
    return np.array(found)


def gru(x, weights):
    """Cho et al. 2014, with the reset gate after the recurrent product."""
    kernel, recurrent, (bias, recurrent_bias) = weights
    h, found = np.zeros(len(recurrent)), []
    for word in x:
        z, r, g = np.split(word @ kernel + bias, 3)
        z_h, r_h, g_h = np.split(h @ recurrent + recurrent_bias, 3)
        z, r = sigmoid(z + z_h), sigmoid(r + r_h)
        h = z * h + (1 - z) * np.tanh(g + r * g_h)
        found.append(h)
    return np.array(found)


def encoded(x, network, weights, bidirectional, unidirectional, kept=()):
    """Return the words of one sentence `(n, E)` after the whole stack; `kept`: factors between networks."""
    weights, kept = iter(weights), iter(kept)
    for _ in bidirectional:
        forward, backward = ([next(weights) for _ in range(3)] for _ in range(2))
        x = np.concatenate([network(x, forward), network(x[::-1], backward)[::-1]], axis=-1) * next(kept, 1)
    for _ in unidirectional:
        x = network(x, [next(weights) for _ in range(3)]) * next(kept, 1)
    return x


@pytest.mark.parametrize(
    ("cell", "network", "stack"),
    [
        ("lstm", lstm, {"bidirectional": (3, 2), "unidirectional": (4,)}),
        ("gru", gru, {"bidirectional": (2,), "unidirectional": (4,)}),
    ],
)
def test_equals_the_equations(cell, network, stack, random):
    """Each sentence on its own, without its padding."""
    layer = RecurrentEncoder(cell=cell, **stack)
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer.build(x.shape)
    layer.set_weights([random.normal(size=w.shape) for w in layer.get_weights()])
    found = ops.convert_to_numpy(layer(x, mask=MASK))
    assert found.shape == (2, 5, 4)
    for sentence, mask, words in zip(x, MASK, found, strict=True):
        expected = encoded(sentence[mask], network, layer.get_weights(), **stack)
        np.testing.assert_allclose(words[mask], expected, atol=1e-5)


def test_given_factors_drop_between_networks(random):
    layer, stack = RecurrentEncoder((3, 2), (4,)), {"bidirectional": (3, 2), "unidirectional": (4,)}
    x = random.normal(size=(2, 5, 4)).astype("float32")
    kept = [2.0 * random.integers(0, 2, (2, 5, units)).astype("float32") for units in (6, 4)]
    found = ops.convert_to_numpy(layer(x, mask=MASK, kept=kept))
    for b, mask in enumerate(MASK):
        factors = [part[b, mask] for part in kept]
        expected = encoded(x[b, mask], lstm, layer.get_weights(), **stack, kept=factors)
        np.testing.assert_allclose(found[b, mask], expected, atol=1e-5)


def test_padding_may_stand_before_a_sentence(random):
    layer, x = RecurrentEncoder((3,), (4,)), random.normal(size=(2, 5, 4)).astype("float32")
    mask = np.array([[False, False, True, True, True], [True] * 5])
    found = ops.convert_to_numpy(layer(x, mask=mask))[0, 2:]
    np.testing.assert_allclose(found, ops.convert_to_numpy(layer(x[:1, 2:]))[0], atol=1e-6)


def test_a_mask_that_the_inputs_carry_is_the_same_mask(random):
    layer, tokens = RecurrentEncoder((3, 3)), np.array([[5, 6, 7, 0, 0], [8, 9, 0, 0, 0]])
    kept = [random.normal(size=(2, 5, 6)).astype("float32")]
    embedded = keras.layers.Embedding(10, 4, mask_zero=True)(tokens)
    found = layer(embedded, kept=kept)
    expected = layer(ops.convert_to_tensor(ops.convert_to_numpy(embedded)), mask=tokens > 0, kept=kept)
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, expected)), atol=1e-6)


@keras.saving.register_keras_serializable("kzoo_tests")
class KerasNetworks(RecurrentEncoder):
    """An encoder that calls Keras's own LSTMs, as on a GPU."""

    def _read(self, network, x, mask):
        return network(x, mask=mask)


@pytest.mark.parametrize("unidirectional", [(), (4,)])
def test_outputs_states_and_gradients_are_those_of_keras_s_lstms(unidirectional, random):
    """After one step of gradient descent on the outputs and the last states; with padding on either side."""
    x, mask = random.normal(size=(3, 5, 4)).astype("float32"), np.array([*MASK, [0, 0, 1, 1, 1]], bool)
    widths = [3] * 4 + [4] * 2 * len(unidirectional)  # of the states
    shapes = (3, 5, 4 if unidirectional else 6), *((3, n) for n in widths)
    goals = [random.normal(size=shape) for shape in shapes]
    results = []
    for kind in (RecurrentEncoder, KerasNetworks):
        keras.utils.set_random_seed(1)
        inputs, real = keras.Input((5, 4)), keras.Input((5,), dtype="bool")
        layer = kind((3,), unidirectional)
        outputs, states = layer(keras.layers.Dense(4)(inputs), mask=real, return_states=True)
        model = keras.Model([inputs, real], [outputs, *states])
        found = model.predict_on_batch([x, mask])
        model.compile(keras.optimizers.SGD(1.0), ["mse"] * len(goals), jit_compile=False)
        model.train_on_batch([x, mask], goals)
        results.append([*found, *model.get_weights()])
    for found, expected in zip(*results, strict=True):
        np.testing.assert_allclose(found, expected, atol=1e-6)


def test_behaves_as_a_layer(random, tmp_path):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer = RecurrentEncoder((2, 2), (3,))
    check_layer(layer, {"inputs": x, "mask": MASK}, tmp_path)
    assert RecurrentEncoder((3, 2)).compute_output_shape((2, 5, 4)) == (2, 5, 4)


def test_no_network_sees_a_sentence_of_padding_alone(random):
    """cuDNN on TensorFlow refuses one; other sentences' words are what they are without it."""
    layer, masks = RecurrentEncoder((3,), (2,), cell="gru"), []
    x = random.normal(size=(2, 5, 4)).astype("float32")
    mask = np.array([[True, True, True, False, False], [False] * 5])
    alone = ops.convert_to_numpy(layer(x[:1], mask=mask[:1]))
    for network in layer.networks:
        call = network.call
        network.call = lambda *a, call=call, **k: (masks.append(k["mask"]), call(*a, **k))[1]
    both = ops.convert_to_numpy(layer(x, mask=mask))
    np.testing.assert_allclose(both[0, :3], alone[0, :3], atol=1e-6)
    for seen in masks:
        assert ops.convert_to_numpy(seen).any(axis=1).all()
    assert len(masks) == 2


def test_dropout_is_on_the_input_of_every_network(random):
    """Only it is random: with what it drops as it is, the networks give the same."""
    layer, dropped = RecurrentEncoder((3,), (4,), dropout=0.5), []
    x = random.normal(size=(2, 5, 4)).astype("float32")
    calm = ops.convert_to_numpy(layer(x))
    np.testing.assert_array_equal(ops.convert_to_numpy(layer(x, training=False)), calm)
    for dropout in layer._dropouts:
        dropout.call = lambda x, training, call=dropout.call: dropped.append(call(x, training)) or dropped[-1]
    found = ops.convert_to_numpy(layer(x, training=True))
    inputs = [ops.convert_to_numpy(part) for part in dropped]
    assert [part.shape for part in inputs] == [(2, 5, 4), (2, 5, 6)]
    assert all((part == 0).any() for part in inputs)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.networks[1](inputs[1])[0]), found, atol=1e-6)


@keras.saving.register_keras_serializable("kzoo_tests")
class AfterCollection(RecurrentEncoder):
    """An encoder that is built where Python has just taken back the memory of what is gone."""

    def build(self, inputs_shape):
        gc.collect(1)
        super().build(inputs_shape)


def test_several_in_one_model_stay_apart_when_loaded(tmp_path):
    """Keras finds layers that a saved model shares by their addresses, which Python gives out again."""
    inputs = keras.Input((3, 4))
    model = keras.Model(inputs, [AfterCollection((2, 2))(inputs) for _ in range(8)])
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(model.get_weights(), loaded.get_weights(), strict=True):
        np.testing.assert_array_equal(ours, theirs)
