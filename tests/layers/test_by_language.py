"""One layer of several by number: what it computes, whom it teaches, how often it is traced."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops

from kzoo.layers import ByLanguage


@keras.saving.register_keras_serializable("kzoo_tests")
class Counted(keras.layers.Dense):
    """A dense layer that counts how often its Python code runs."""

    runs = 0

    def call(self, inputs, training=None):
        Counted.runs += 1
        return super().call(inputs)


def language(number, rows=2):
    return np.full(rows, number, "int32")


@pytest.fixture
def routed():
    """A model around three layers, compiled, and inputs for it."""
    number, x = keras.Input((), dtype="int32"), keras.Input((5, 4))
    layer = ByLanguage([Counted(3, name=f"dense_{i}") for i in range(3)])
    model = keras.Model([number, x], layer(number, x))
    model.compile(keras.optimizers.SGD(0.1), "mse", jit_compile=keras.backend.backend() == "jax")
    return model, layer, np.random.default_rng(1).normal(size=(2, 5, 4)).astype("float32")


def test_behaves_as_a_layer(random, tmp_path):
    """Of one language, so that every weight learns; which of several does stands below."""
    inputs = {"language": language(0), "inputs": random.normal(size=(2, 5, 4)).astype("float32")}
    check_layer(ByLanguage([keras.layers.Dense(3)]), inputs, tmp_path)


def test_computes_what_the_language_s_layer_does(routed):
    model, layer, x = routed
    for number, dense in enumerate(layer.layers):
        expected = x @ dense.get_weights()[0] + dense.get_weights()[1]
        np.testing.assert_allclose(ops.convert_to_numpy(layer(language(number), x)), expected, atol=1e-5)
        np.testing.assert_allclose(model.predict_on_batch([language(number), x]), expected, atol=1e-5)
        chosen = layer.choose(language(number), lambda dense: ops.sum(dense.kernel))
        np.testing.assert_allclose(float(chosen), dense.get_weights()[0].sum(), rtol=1e-5)


def test_one_trace_serves_all_languages(routed):
    model, _, x = routed
    Counted.runs = 0
    model.predict_on_batch([language(0), x])
    assert Counted.runs <= 1  # none where Keras has traced it


def with_lora(rate):
    """Return a dense layer with an update of low rank that counts `rate` times."""
    dense = keras.layers.Dense(4)
    dense.build((2, 5, 4))
    dense.enable_lora(2, lora_alpha=2 * rate)
    dense.lora_kernel_b.assign(np.ones((2, 4)))
    return dense


@pytest.mark.parametrize(
    "layers",
    [
        lambda: [with_lora(1), keras.layers.Dense(4)],
        lambda: [with_lora(1), with_lora(3)],
        lambda: [keras.layers.Dense(4, name=name, activation=name) for name in ("tanh", "relu")],
        lambda: [keras.Sequential([keras.layers.Dense(4, activation=name)]) for name in ("tanh", "relu")],
        lambda: [keras.layers.LayerNormalization(epsilon=epsilon) for epsilon in (1e-3, 1.0)],
    ],
)
def test_layers_may_differ_in_more_than_the_values_of_their_weights(layers, random):
    x = random.normal(size=(2, 5, 4)).astype("float32")
    layer = ByLanguage(layers())
    for number, one in enumerate(layer.layers):
        found = ops.convert_to_numpy(layer(language(number), x))
        np.testing.assert_allclose(found, ops.convert_to_numpy(one(x)), atol=1e-5)


def test_other_arguments_reach_the_layer(random):
    layers = [keras.layers.LSTM(3, return_sequences=True) for _ in range(2)]
    for lstm in layers:
        lstm.build((None, 5, 4))
    x, mask = random.normal(size=(2, 5, 4)).astype("float32"), np.array([[1] * 5, [1, 1, 0, 0, 0]], bool)
    found = ByLanguage(layers)(language(1), x, mask=mask)
    expected = layers[1](x, mask=mask)
    np.testing.assert_allclose(ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=1e-6)


def test_a_carried_mask_is_refused_unless_it_is_given(random):
    """Given, it reaches the layer and what averages after it."""
    layers = [keras.layers.LSTM(3, return_sequences=True) for _ in range(2)]
    for lstm in layers:
        lstm.build((None, 5, 4))
    ids = np.array([[3, 1, 4, 1, 5], [2, 6, 0, 0, 0]], "int32")
    embedded = keras.layers.Embedding(9, 4, mask_zero=True)(ids)
    routed = ByLanguage(layers, name="routed")
    with pytest.raises(ValueError, match="routed"):
        routed(language(1), embedded)
    average = keras.layers.GlobalAveragePooling1D()
    found = average(routed(language(1), embedded, mask=ids > 0))
    expected = average(layers[1](embedded))
    np.testing.assert_allclose(ops.convert_to_numpy(found), ops.convert_to_numpy(expected), atol=1e-6)


def test_only_the_language_s_layer_learns(routed):
    model, layer, x = routed
    for number in (2, 0, 1):
        before = [dense.get_weights() for dense in layer.layers]
        model.train_on_batch([language(number), x], np.ones((2, 5, 3), "float32"))
        for i, dense in enumerate(layer.layers):
            for old, new in zip(before[i], dense.get_weights(), strict=True):
                assert (old != new).any() == (i == number)


@pytest.mark.skipif(keras.backend.backend() == "torch", reason="torch traces nothing at all")
def test_another_language_traces_nothing(routed):
    model, _, x = routed
    model.predict_on_batch([language(0), x])
    model.train_on_batch([language(0), x], np.ones((2, 5, 3), "float32"))
    before = Counted.runs
    for number in (1, 2, 0):
        model.predict_on_batch([language(number), x])
        model.train_on_batch([language(number), x], np.ones((2, 5, 3), "float32"))
    assert Counted.runs == before


def test_saved_and_loaded(routed, tmp_path):
    model, layer, x = routed
    model.save(tmp_path / "model.keras")
    loaded = keras.saving.load_model(tmp_path / "model.keras")
    for number in range(3):
        np.testing.assert_array_equal(
            loaded.predict_on_batch([language(number), x]), model.predict_on_batch([language(number), x])
        )
    again = ByLanguage.from_config(layer.get_config())
    assert [type(dense) for dense in again.layers] == [Counted] * 3
    assert again.get_config() == layer.get_config()


def test_shapes_are_known_before_numbers(routed):
    model, layer, _ = routed
    assert model.output.shape == (None, 5, 3)
    assert layer.compute_output_shape((2,), (2, 5, 4)) == (2, 5, 3)


def test_float32_layers_keep_their_precision(random):
    """Of a layer that computes in less, only the inputs are rounded."""
    layers = [keras.layers.Dense(3, dtype="float32") for _ in range(2)]
    x = np.ones((2, 5, 4), "float32")
    routed = ByLanguage(layers, dtype="mixed_bfloat16")
    found = routed(language(1), x)
    np.testing.assert_allclose(*map(ops.convert_to_numpy, (found, layers[1](x))), rtol=1e-6)
