"""The five architectures against the equations in NumPy and SciPy, Keras's own layers, the paper's sizes."""

import keras
import numpy as np
import pytest
from check_layer import check_layer
from keras import ops
from scipy.signal import correlate

from kzoo.layers import GlyphCharEncoder
from kzoo.layers.glyph_char_encoder import ARCHITECTURES


def random_glyphs(random, *shape):
    return (random.random((*shape, 22, 22)) > 0.7).astype("float32")


def filled(encoder, random):
    """Give every weight a random value, the variance a positive one."""
    encoder.set_weights([0.1 + np.abs(random.normal(size=w.shape)) * 0.1 for w in encoder.get_weights()])
    return encoder


def named_weights(encoder):
    """Return the weights by their names within the encoder."""
    names = [weight.path.split("/", 1)[1] for weight in encoder.weights]
    return dict(zip(names, encoder.get_weights(), strict=True))


def cnn(glyph, weights):
    """Return the 4×4×32 numbers of one glyph."""
    x = glyph[..., None]
    for kernel, bias in (weights[:2], weights[2:4]):
        channels = [
            sum(correlate(x[..., i], kernel[..., i, o], mode="valid") for i in range(x.shape[-1]))
            for o in range(32)
        ]
        x = np.maximum(np.stack(channels, axis=-1) + bias, 0)
        x = x.reshape(x.shape[0] // 2, 2, x.shape[1] // 2, 2, 32).max(axis=(1, 3))
    return x.reshape(-1)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_behaves_as_a_layer(architecture, random, tmp_path):
    check_layer(GlyphCharEncoder(8, architecture), {"glyphs": random_glyphs(random, 2, 3)}, tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_equals_the_formula(architecture, random):
    encoder = GlyphCharEncoder(6, architecture, 6 if architecture == "cnn_relu" else None)
    glyphs = random_glyphs(random, 4)
    encoder.build(glyphs.shape)
    filled(encoder, random)
    weights = named_weights(encoder)
    x = glyphs.reshape(4, -1)
    if "cnn" in architecture:
        names = ("kernel_1", "bias_1", "kernel_2", "bias_2")
        x = np.stack([cnn(glyph, [weights[f"cnn/{name}"] for name in names]) for glyph in glyphs])
    x = x @ weights["features/kernel"] + weights["features/bias"]
    x = (x - weights["moving_mean"]) / np.sqrt(weights["moving_variance"] + 1e-3)
    x = x * weights["gamma"] + weights["beta"]
    if architecture in ("cnn_relu", "fc_2"):
        x = np.maximum(x, 0)
    if architecture == "cnn_softmax_fc":
        x = np.exp(x - x.max(axis=-1, keepdims=True))
        x /= x.sum(axis=-1, keepdims=True)
    np.testing.assert_allclose(ops.convert_to_numpy(encoder.activations(glyphs)), x, rtol=1e-3, atol=1e-5)
    if architecture in ("cnn_fc_relu", "cnn_softmax_fc", "fc_2"):
        x = x @ weights["output/kernel"] + weights["output/bias"]
    if architecture == "cnn_fc_relu":
        x = np.maximum(x, 0)
    np.testing.assert_allclose(ops.convert_to_numpy(encoder(glyphs)), x, rtol=1e-3, atol=1e-4)


CNN = (9 * 32 + 32) + (9 * 32 * 32 + 32)


@pytest.mark.parametrize(
    ("architecture", "num_features", "parameters"),
    [
        # convolutions, conv 4×4×F, two of F for batch normalization, FC to 512
        ("cnn_fc_relu", None, CNN + (16 * 32 + 1) * 1024 + 2 * 1024 + 1025 * 512),
        ("cnn_fc_relu", 256, CNN + (16 * 32 + 1) * 256 + 2 * 256 + 257 * 512),
        ("cnn_softmax_fc", None, CNN + (16 * 32 + 1) * 4096 + 2 * 4096 + 4097 * 512),
        ("cnn_relu", None, CNN + (16 * 32 + 1) * 512 + 2 * 512),
        ("fc_1", None, 485 * 512 + 2 * 512),
        ("fc_2", None, 485 * 1024 + 2 * 1024 + 1025 * 512),
    ],
)
def test_sizes_are_the_papers(architecture, num_features, parameters):
    encoder = GlyphCharEncoder(architecture=architecture, num_features=num_features)
    encoder.build((None, 22, 22))
    assert sum(int(np.prod(w.shape)) for w in encoder.trainable_weights) == parameters
    assert encoder.compute_output_shape((7, 3, 22, 22)) == (7, 3, 512)


def test_the_convolutions_are_keras_own(random):
    glyphs = random_glyphs(random, 3)
    encoder = GlyphCharEncoder(8, "cnn_relu")
    encoder.build(glyphs.shape)
    filled(encoder, random)
    layers = keras.layers
    peer = keras.Sequential(
        [
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(32, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Conv2D(8, 4),
            layers.BatchNormalization(),
            layers.ReLU(),
            layers.Flatten(),
        ]
    )
    peer.build((None, 22, 22, 1))
    named = named_weights(encoder)
    order = ("cnn/kernel_1", "cnn/bias_1", "cnn/kernel_2", "cnn/bias_2", "features/kernel", "features/bias")
    order += ("gamma", "beta", "moving_mean", "moving_variance")
    peer.set_weights([named[n].reshape(w.shape) for n, w in zip(order, peer.get_weights(), strict=True)])
    for training in (False, True):
        expected = ops.convert_to_numpy(peer(glyphs[..., None], training=training))
        actual = ops.convert_to_numpy(encoder(glyphs, training=training))
        np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-3)
    named = named_weights(encoder)
    np.testing.assert_allclose(named["moving_mean"], peer.get_weights()[-2], rtol=1e-4)
    np.testing.assert_allclose(named["moving_variance"], peer.get_weights()[-1], rtol=1e-3)


def test_padding_does_not_change_the_statistics(random):
    real = random_glyphs(random, 2, 5)
    padded = np.concatenate([real, random_glyphs(random, 2, 4)], axis=1)
    mask = np.array([[True] * 5 + [False] * 4] * 2)
    encoders = [GlyphCharEncoder(8, "cnn_fc_relu", 16) for _ in range(2)]
    for encoder in encoders:
        encoder.build(real.shape)
    encoders[1].set_weights(encoders[0].get_weights())
    without = ops.convert_to_numpy(encoders[0](real, training=True))
    with_padding = ops.convert_to_numpy(encoders[1](padded, training=True, mask=mask))
    np.testing.assert_allclose(with_padding[:, :5], without, atol=1e-5)
    for one, other in zip(encoders[0].get_weights(), encoders[1].get_weights(), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-6)


def test_a_fixed_encoder_keeps_its_statistics(random):
    encoder = GlyphCharEncoder(8, "fc_2", 16)
    glyphs = random_glyphs(random, 5)
    expected = ops.convert_to_numpy(encoder(glyphs))
    encoder.trainable = False
    np.testing.assert_array_equal(ops.convert_to_numpy(encoder(glyphs, training=True)), expected)
    assert not named_weights(encoder)["moving_mean"].any()


def test_what_cannot_be_is_named(random):
    with pytest.raises(ValueError, match="architecture is one of .*'cnn_fc_relu'.*not 'cnn'"):
        GlyphCharEncoder(architecture="cnn")
    with pytest.raises(ValueError, match="cnn_relu has F = D = 512, not F = 64"):
        GlyphCharEncoder(architecture="cnn_relu", num_features=64)
    with pytest.raises(ValueError, match="glyphs are 22×22 pixels, these have the shape .3, 20, 20"):
        GlyphCharEncoder(8)(random.random((3, 20, 20)))
