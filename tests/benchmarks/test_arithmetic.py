"""The arithmetic of training against formulas and XLA, and the machine's matrix product against NumPy's."""

import functools
import time

import keras
import numpy as np
import pytest

from benchmarks.arithmetic import (
    glyph_products,
    kernel_sizes,
    measured_peak,
    picture_products,
    training_flops,
)
from kzoo.presets import (
    attention_bridge_m2m_tiny,
    glyph_zh_en_tiny,
    learned_tiny,
    lookup_zh_en_tiny,
    pope_tiny,
    sine_tiny,
)

D, F, V = 32, 48, 70


def transformer(**options):
    sizes = {"num_layers": 2, "width": D, "num_heads": 4, "feedforward_dim": F, "dropout": 0.0}
    return pope_tiny(source_vocabulary_size=V, **sizes, **options).backbone


def test_kernels_of_a_transformer():
    layer = 4 * D * D + 2 * D * F
    assert kernel_sizes(transformer()) == (2 * layer, 2 * (layer + 4 * D * D) + V * D)


def test_positions_that_are_learned_are_looked_up():
    sizes = {"source_vocabulary_size": V, "num_layers": 1, "width": D, "num_heads": 4, "feedforward_dim": F}
    learned, sine = (build(**sizes).backbone for build in (learned_tiny, sine_tiny))
    assert kernel_sizes(learned) == kernel_sizes(sine)


def test_a_word_meets_the_kernels_of_one_language():
    sizes = {"embedding_dim": 16, "width": 16, "num_heads": 2, "hidden_dim": 8}
    two, four = (
        kernel_sizes(attention_bridge_m2m_tiny(vocabulary_size=50, languages=codes, **sizes).backbone)
        for codes in (("en", "de"), ("en", "de", "fr", "cs"))
    )
    assert two == four


def test_the_bridge_s_kernels_are_among_the_source_s():
    sizes = {"embedding_dim": 16, "width": 16, "num_heads": 2, "hidden_dim": 8}
    build = functools.partial(attention_bridge_m2m_tiny, vocabulary_size=50, languages=("en", "de"), **sizes)
    source, _ = kernel_sizes(build().backbone)
    assert source == kernel_sizes(build(bridge=False).backbone)[0] + 16 * 8 + 8 * 2


def test_kernels_of_a_recurrent_model():
    sizes = {"embedding_dim": 8, "bidirectional": (6,), "unidirectional": (), "decoder_units": (10,)}
    backbone = lookup_zh_en_tiny(source_vocabulary_size=30, target_vocabulary_size=40, **sizes).backbone
    source, target = kernel_sizes(backbone)
    assert source == 2 * 4 * 6 * (8 + 6)  # two directions, four gates, input and state
    # the cell reads the last word and the attention's output; keys of the source, and both joined
    assert target == 4 * 10 * (8 + 10 + 10) + 12 * 10 + (12 + 10) * 10 + 10 * 40


def test_products_of_a_picture():
    places = (16 * 16, 8 * 8, 4 * 4, 2 * 2)  # of 32×32 pixels, halved by every convolution
    channels = (3, 16, 32, 64, 128)
    convolved = sum(9 * a * b * n for a, b, n in zip(channels, channels[1:], places, strict=False))
    queries, layers = 4 * (128 * D + D * D), 2  # of four regions, and what they find
    assert picture_products(transformer(image_shape=(32, 32, 3))) == convolved + layers * queries
    assert picture_products(transformer(image_shape=(5, 24))) == layers * 5 * (24 * D + D * D)
    assert picture_products(transformer(image_shape=(24,))) == layers * (24 * D + D * D)
    assert picture_products(transformer()) == 0


@pytest.mark.parametrize(
    ("architecture", "products"),
    [
        ("cnn_fc_relu", 9 * 32 * 400 + 9 * 32 * 32 * 64 + 512 * 1024 + 1024 * 8),
        ("cnn_relu", 9 * 32 * 400 + 9 * 32 * 32 * 64 + 512 * 8),
        ("fc_1", 484 * 8),
        ("fc_2", 484 * 512 + 512 * 8),
    ],
)
def test_products_of_a_glyph(architecture, products):
    sizes = {"embedding_dim": 8, "bidirectional": (6,), "unidirectional": (), "decoder_units": (10,)}
    vocabularies = {"source_vocabulary_size": 30, "target_vocabulary_size": 40}
    backbone = glyph_zh_en_tiny(architecture=architecture, **vocabularies, **sizes).backbone
    looked_up = lookup_zh_en_tiny(**vocabularies, **sizes).backbone
    assert (glyph_products(backbone), glyph_products(looked_up)) == (products, 0)
    assert kernel_sizes(backbone) == kernel_sizes(looked_up)
    added = training_flops(backbone, 1, 5, 5, 25, source_types=3) - training_flops(looked_up, 1, 5, 5, 25)
    assert added == 6 * 3 * products


def test_words_meet_the_keys_and_values_of_an_image_s_attention_alone():
    alone, seeing = (kernel_sizes(transformer(image_shape=shape)) for shape in (None, (24,)))
    assert seeing == (alone[0] + 2 * D * 2 * D, alone[1])


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="JAX alone tells what XLA computes")
def test_arithmetic_is_what_xla_counts():
    import jax

    backbone = transformer(max_length=64)
    B, L = 3, 40
    words = np.random.default_rng(0).integers(4, V, (2, B, L)).astype("int32")
    weights = [variable.value for variable in backbone.trainable_variables]
    fixed = [variable.value for variable in backbone.non_trainable_variables]

    def loss(weights):
        inputs = {"source": words[0], "target": words[1]}
        return backbone.stateless_call(weights, fixed, inputs, training=False)[0].sum()

    counted = jax.jit(jax.grad(loss)).lower(weights).compile().cost_analysis()["flops"]
    needed = training_flops(backbone, B, B * L, B * L, B * L**2)
    assert 0.8 < needed / counted < 1.1


def test_the_peak_is_of_this_machine():
    matrix, times = np.random.default_rng(0).random((1024, 1024), "float32"), []
    for _ in range(5):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    assert 1 / 5 < measured_peak("float32", seconds=0.05) * min(times) / (2 * 1024**3) < 5
