"""Dense layers and attention's joint kernel with LoRA against NumPy: W + α/r · A·B."""

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.layers import MultiHeadAttention
from kzoo.layers.dense import Dense


def model_of(layer) -> keras.Model:
    inputs = keras.Input((4,))
    return keras.Model(inputs, layer(inputs))


@pytest.fixture(params=[True, False], ids=["bias", "no_bias"])
def adapted(request, random):
    """A model of a layer with LoRA of rank 2 and α = 6, and the weights that it amounts to."""
    model = model_of(Dense(3, use_bias=request.param))
    layer = model.layers[-1]
    layer.enable_lora(2, lora_alpha=6)
    layer.set_weights([random.normal(size=weight.shape) for weight in layer.weights])
    parts = layer._kernel, layer.lora_kernel_a, layer.lora_kernel_b
    kernel, a, b = map(ops.convert_to_numpy, parts)
    return model, kernel + 3 * a @ b, ops.convert_to_numpy(layer.bias) if request.param else 0


def test_factors_are_added(adapted, random):
    model, kernel, bias = adapted
    x = random.normal(size=(5, 4)).astype("float32")
    np.testing.assert_allclose(model.predict_on_batch(x), x @ kernel + bias, atol=1e-5)
    model.layers[-1].merge_lora()
    np.testing.assert_allclose(ops.convert_to_numpy(model(x)), x @ kernel + bias, atol=1e-5)


def test_saved_factors_are_loaded_as_they_were_or_merged(adapted, tmp_path):
    model, kernel, _ = adapted
    layer, file = model.layers[-1], tmp_path / "model.weights.h5"
    saved = layer.get_weights()
    model.save_weights(file)
    layer.set_weights([np.zeros_like(weight) for weight in saved])
    model.load_weights(file)
    for ours, theirs in zip(layer.get_weights(), saved, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    plain = model_of(Dense(3, use_bias=layer.use_bias))
    plain.load_weights(file)
    np.testing.assert_allclose(plain.layers[-1].get_weights()[0], kernel, atol=1e-6)


def test_a_merged_layer_learns_as_if_it_never_had_factors(adapted):
    model, kernel, _ = adapted
    layer = model.layers[-1]
    layer.merge_lora()
    assert [weight.name for weight in layer.trainable_weights] == ["kernel", "bias"][: 1 + layer.use_bias]
    np.testing.assert_allclose(ops.convert_to_numpy(layer.kernel), kernel, atol=1e-6)
    again = Dense.from_config(layer.get_config())
    again.build((None, 4))
    assert not again.lora_enabled
    layer.enable_lora(1)
    np.testing.assert_allclose(ops.convert_to_numpy(layer.kernel), kernel, atol=1e-6)


def test_the_joint_kernel_of_attention_is_adapted(random, tmp_path):
    inputs = keras.Input((5, 4))
    model = keras.Model(inputs, MultiHeadAttention(2, 3)(inputs))
    layer, x = model.layers[-1], random.normal(size=(2, 5, 4)).astype("float32")
    expected = ops.convert_to_numpy(model(x))
    layer.enable_lora(2, lora_alpha=6)
    np.testing.assert_allclose(ops.convert_to_numpy(model(x)), expected, atol=1e-6)  # it begins with zeros
    layer.set_weights([random.normal(size=weight.shape) for weight in layer.weights])
    kernel, a, b = map(ops.convert_to_numpy, (layer._kernel, layer.lora_kernel_a, layer.lora_kernel_b))
    adapted, file = ops.convert_to_numpy(model(x)), tmp_path / "model.weights.h5"
    model.save_weights(file)
    plain = keras.Model(inputs, MultiHeadAttention(2, 3)(inputs))
    plain.load_weights(file)
    np.testing.assert_allclose(ops.convert_to_numpy(plain.layers[-1].kernel), kernel + 3 * a @ b, atol=1e-6)
    layer.merge_lora()
    plain.save_weights(file)
    again = keras.Model(inputs, MultiHeadAttention(2, 3)(inputs))
    again.layers[-1].enable_lora(1)
    again.load_weights(file)
    assert ops.convert_to_numpy(again.layers[-1].lora_kernel_a).any()
    for merged in (model, plain, again):
        np.testing.assert_allclose(ops.convert_to_numpy(merged(x)), adapted, atol=1e-5)
    assert [weight.path for weight in layer.trainable_weights] == [w.path for w in layer.weights]


def test_only_factors_and_biases_of_adapted_attention_learn():
    layer = MultiHeadAttention(2, 3)
    layer.build((None, 5, 4))
    layer.enable_lora(2)
    assert {weight.name for weight in layer.trainable_weights} == {"bias", "lora_kernel_a", "lora_kernel_b"}
    number = len(layer.weights)
    with pytest.raises(ValueError, match="lora"):
        layer.enable_lora(2)
    assert len(layer.weights) == number
