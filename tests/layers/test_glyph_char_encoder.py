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


FEATURES = {  # what stands between the first linear map and the second
    "cnn_fc_relu": ("norm", "relu"),
    "cnn_softmax_fc": ("softmax",),
    "cnn_relu": ("norm", "relu"),
    "fc_1": (),
    "fc_2": ("norm", "relu"),
}
OUTPUT = {
    "cnn_fc_relu": ("norm", "relu"),
    "cnn_softmax_fc": (),
    "fc_2": (),
}


def formula(architecture, glyphs, weights, moments=None):
    """Return features and vectors by NumPy; with a dict `moments`, by the batch's, which it receives."""

    def then(x, steps, prefix):
        if "norm" in steps:
            names = [f"{prefix}{name}" for name in ("moving_mean", "moving_variance", "gamma", "beta")]
            mean, variance, gamma, beta = (weights[name] for name in names)
            if moments is not None:
                mean, variance = moments[names[0]], moments[names[1]] = x.mean(axis=0), x.var(axis=0)
            x = (x - mean) / np.sqrt(variance + 1e-3) * gamma + beta
        if "softmax" in steps:
            x = np.exp(x - x.max(axis=-1, keepdims=True))
            x /= x.sum(axis=-1, keepdims=True)
        return np.maximum(x, 0) if "relu" in steps else x

    x = glyphs.reshape(len(glyphs), -1).astype("float64")
    if "cnn" in architecture:
        names = ("kernel_1", "bias_1", "kernel_2", "bias_2")
        x = np.stack([cnn(glyph, [weights[f"cnn/{name}"] for name in names]) for glyph in glyphs])
    x = features = then(x @ weights["features/kernel"] + weights["features/bias"], FEATURES[architecture], "")
    if architecture in OUTPUT:
        x = then(x @ weights["output/kernel"] + weights["output/bias"], OUTPUT[architecture], "output_")
    return features, x


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_behaves_as_a_layer(architecture, random, tmp_path):
    check_layer(GlyphCharEncoder(8, architecture), {"glyphs": random_glyphs(random, 2, 3)}, tmp_path)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_equals_the_formula(architecture, random):
    encoder = GlyphCharEncoder(6, architecture)
    glyphs = random_glyphs(random, 4)
    encoder.build(glyphs.shape)
    filled(encoder, random)
    features, vectors = formula(architecture, glyphs, named_weights(encoder))
    found = ops.convert_to_numpy(encoder.activations(glyphs))
    np.testing.assert_allclose(found, features, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(ops.convert_to_numpy(encoder(glyphs)), vectors, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_statistics_count_a_glyph_as_often_as_it_occurs(architecture, random):
    """Both normalizations, and the stored statistics: as if each glyph stood there so many times."""
    encoder = GlyphCharEncoder(6, architecture)
    glyphs, counts = random_glyphs(random, 4), np.array([3, 1, 0, 2])
    encoder.build(glyphs.shape)
    filled(encoder, random)
    before, moments = named_weights(encoder), {}
    _, expected = formula(architecture, np.repeat(glyphs, counts, axis=0), before, moments)
    vectors, used = encoder.vectors(encoder.features(glyphs), counts)
    found = np.repeat(ops.convert_to_numpy(vectors), counts, axis=0)
    np.testing.assert_allclose(found, expected, rtol=1e-2, atol=1e-3)
    encoder.update_moments(used)
    after = named_weights(encoder)
    assert {name for name in after if "moving" in name} == moments.keys()
    for name, of_batch in moments.items():
        np.testing.assert_allclose(after[name], 0.9 * before[name] + 0.1 * of_batch, rtol=1e-3, atol=1e-6)


# The paper's Table 1: convolutions, features, batch normalization of the F features, FC to 512 and its own.
SIZES = {
    ("cnn_fc_relu", None): (9_568, 525_312, 2_048, 524_800, 1_024),
    ("cnn_softmax_fc", None): (9_568, 513 * 4_096, 4_097 * 512),
    ("cnn_relu", None): (9_568, 513 * 512, 2 * 512),
    ("fc_1", None): (485 * 512,),
    ("fc_2", None): (485 * 512, 2 * 512, 513 * 512),
    ("cnn_fc_relu", 256): (9_568, 513 * 256, 2 * 256, 257 * 512, 2 * 512),
}
SUMS = {
    "cnn_fc_relu": 1_062_752,
    "cnn_softmax_fc": 4_208_480,
    "cnn_relu": 273_248,
    "fc_1": 248_320,
    "fc_2": 512_000,
}


@pytest.mark.parametrize(("architecture", "num_features"), SIZES)
def test_sizes(architecture, num_features):
    encoder = GlyphCharEncoder(architecture=architecture, num_features=num_features)
    encoder.build((None, 22, 22))
    parts = {"": 0, "output_": 0, "cnn": 0, "features": 0, "output": 0}
    for weight in encoder.trainable_weights:
        layer, _, name = weight.path.split("/", 1)[1].rpartition("/")
        parts[layer or name.removesuffix("gamma").removesuffix("beta")] += int(np.prod(weight.shape))
    order = (parts[name] for name in ("cnn", "features", "", "output", "output_"))
    assert tuple(filter(None, order)) == SIZES[architecture, num_features]
    assert encoder.compute_output_shape((7, 3, 22, 22)) == (7, 3, 512)


def test_the_sums_are_those_of_table_1():
    assert {name: sum(SIZES[name, None]) for name in SUMS} == SUMS


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
            layers.BatchNormalization(momentum=0.9),
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


@pytest.mark.parametrize("architecture", ["cnn_fc_relu", "cnn_relu", "fc_2"])
def test_padding_does_not_change_the_statistics(architecture, random):
    real = random_glyphs(random, 2, 5)
    padded = np.concatenate([real, random_glyphs(random, 2, 4)], axis=1)
    mask = np.array([[True] * 5 + [False] * 4] * 2)
    encoders = [GlyphCharEncoder(8, architecture, 8) for _ in range(2)]
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
