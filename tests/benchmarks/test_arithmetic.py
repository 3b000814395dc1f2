"""The arithmetic of training against formulas and XLA, and the machine's matrix product against NumPy's."""

import time

import keras
import numpy as np
import pytest

from benchmarks.arithmetic import kernel_sizes, measured_peak, training_flops
from kzoo.presets import attention_bridge_bilingual, pope_tiny

D, F, V = 32, 48, 70


def transformer(**options):
    sizes = {"num_layers": 2, "width": D, "num_heads": 4, "feedforward_dim": F, "dropout": 0.0}
    return pope_tiny(source_vocabulary_size=V, **sizes, **options).backbone


def test_kernels_of_a_transformer():
    layer = 4 * D * D + 2 * D * F
    assert kernel_sizes(transformer()) == (2 * layer, 2 * (layer + 4 * D * D) + V * D)


def test_kernels_of_a_bridge_s_direction():
    """Two LSTM layers, whose four gates read their input and their last output; Eq. 1; Luong's output."""
    heads, hidden = 3, 20
    sizes = {"width": D, "num_heads": heads, "hidden_dim": hidden, "embedding_dim": D}
    bridge = attention_bridge_bilingual(vocabulary_size=V, **sizes).backbone
    encoder = 2 * 2 * 4 * (D // 2) * (D + D // 2)
    decoder = 4 * D * (2 * D + D) + 4 * D * (D + D) + 2 * D * D
    assert kernel_sizes(bridge) == (encoder + D * hidden + hidden * heads, decoder + V * D)


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
    needed = training_flops(backbone, B * L, B * L, B * L**2)
    assert 0.8 < needed / counted < 1.1


def test_the_peak_is_of_this_machine():
    matrix, times = np.random.default_rng(0).random((1024, 1024), "float32"), []
    for _ in range(5):
        start = time.perf_counter()
        matrix @ matrix
        times.append(time.perf_counter() - start)
    assert 1 / 5 < measured_peak("float32", seconds=0.05) * min(times) / (2 * 1024**3) < 5
