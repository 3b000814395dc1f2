"""A run's report: words and padding against counting by hand, arithmetic against formulas and XLA."""

import functools
import itertools
import json
import re
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import keras
import numpy as np
import pytest

from kzoo.data import Batches
from kzoo.presets import (
    attention_bridge_m2m_tiny,
    glyph_zh_en_tiny,
    learned_tiny,
    lookup_zh_en_tiny,
    pope_tiny,
    sine_tiny,
)
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.report import (
    CountedBatches,
    RunReport,
    glyph_products,
    kernel_sizes,
    measured_peak,
    peak_memory,
    picture_products,
    training_flops,
)

D, F, V = 32, 48, 70


def counted(counts):
    """Return three batches of 30 target tokens together, with such counts."""
    batches = CountedBatches(Batches([[5]] * 6, [[6] * 4] * 6, tokens=10, num_shapes=1))
    batches.counts = counts
    return batches


def test_batches_are_counted():
    source = [[5] * n for n in (3, 1, 4, 1, 5)]
    target = [[6] * n for n in (2, 7, 1, 8, 2)]
    batches = CountedBatches(Batches(source, target, tokens=27, num_shapes=2))
    counts = batches.counts
    made = [batches[i] for i in range(len(batches))]
    assert counts["batches"] == len(batches) == len(made)
    assert counts["sentences"] == 5
    assert counts["source_tokens"] == 14 + 5  # with the end symbols
    assert counts["target_tokens"] == batches.batches.num_tokens == 20 + 5
    assert counts["places"] == sum(inputs["source"].size + labels.size for inputs, labels, _ in made)
    assert counts["source_types"] == 2 * len(batches)  # one word and the end symbol
    assert counts["squares"] == sum(n**2 for n in (4, 8, 5, 9, 6))
    batches.start_epoch(3)
    assert batches.batches.epoch == 3


def test_a_short_run_reports_what_it_trained_not_what_was_made_ahead(monkeypatch):
    monkeypatch.setattr("kzoo.training.report.measured_peak", lambda dtype: 1e9)
    counts = Counter(batches=15, sentences=30, source_tokens=150, target_tokens=300, places=600, seconds=1.0)
    checkpoints = SimpleNamespace(seconds=0.0, batch=3)
    report = RunReport(counted(counts), checkpoints, time.perf_counter())
    report.set_model(SimpleNamespace(backbone=transformer(), dtype_policy=keras.DTypePolicy("float32")))
    report.on_train_begin()
    report.on_epoch_begin(0)
    for batch in range(10):
        report.on_train_batch_end(batch)
    checkpoints.seconds = 4.0
    report.on_epoch_end(0, {})
    rows = dict(report.rows())
    needed = training_flops(report.model.backbone, 20, 100, 200, 0) / 4.0
    assert rows["target tokens per second"] == "50"
    assert rows["  share of a matrix product"] == f"{needed / 1e9:.1%}"
    assert rows["padding among the tokens"] == "25.0%"
    assert rows["making batches, of training"] == "25.0%"
    assert "steps compiled as" not in rows
    report.passes = 2
    assert dict(report.rows())["  share of a matrix product"] == f"{2 * needed / 1e9:.1%}"
    report.compiled = {"way": "graph", "seconds": {"XLA": 2.0, "graph": 1.5}}
    assert report.rows()[-3:] == [
        ("steps compiled as", "graph"),
        ("  a step as XLA", "2.00 s"),
        ("  a step as graph", "1.50 s"),
    ]


def test_a_report_is_of_all_devices_and_of_this_start_alone(monkeypatch):
    """Of a start 100 seconds ago; 6 of the epoch's 10 seconds were of an earlier one, with other batches."""
    monkeypatch.setattr("kzoo.training.report.measured_peak", lambda dtype: 1e9)
    monkeypatch.setattr("kzoo.training.report.training_flops", lambda backbone, *counts: 1e9 * counts[-1])
    counts = Counter(batches=1, sentences=1, source_tokens=5, target_tokens=8, source_types=2, places=16)
    checkpoints, logs = SimpleNamespace(seconds=6.0, batch=3), {}
    report = RunReport(counted(counts), checkpoints, time.perf_counter() - 100, devices=2)
    report.set_model(SimpleNamespace(backbone=None, dtype_policy=keras.DTypePolicy("float32")))
    report.on_train_begin()
    report.on_epoch_begin(3)
    report.on_train_batch_end(0)
    checkpoints.seconds = 10.0
    report.on_epoch_end(3, logs)
    logs["val_seconds"] = 7.0  # of a later callback
    rows = {name.strip(): value for name, value in report.rows()}
    assert rows["target tokens per second"] == "2"
    assert rows["arithmetic needed for them"] == "0.5 GFLOP/s"  # of the source's types
    assert rows["which reaches, in float32"] == "2 GFLOP/s"
    assert rows["share of a matrix product"] == "25.0%"
    assert (rows["before training"], rows["training"], rows["validation"]) == ("100 s", "4 s", "7 s")


def test_the_peak_memory_of_a_process_is_what_linux_counts(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")  # as without an accelerator
    counted = lambda: 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # noqa: E731
    before = counted()
    assert before <= peak_memory() <= counted()


def test_speed_counts_this_start_s_batches_in_this_start_s_time():
    """Of an epoch that goes on, 12 seconds in: 8 more, of which making batches took 2."""
    counts, checkpoints = Counter(seconds=7.0), SimpleNamespace(seconds=12.0, batch=2)
    report = RunReport(counted(counts), checkpoints, 0.0)
    assert (len(report.batches), report.batches.num_tokens) == (3, 30)
    report.on_epoch_begin(1)
    checkpoints.seconds, counts["seconds"] = 20.0, 9.0
    logs = {}
    report.on_epoch_end(1, logs)
    assert logs == {"seconds": 20.0, "tokens_per_second": 1.0, "input_share": 0.25}


class Slow(Checkpoints):
    """Checkpoints of which each takes 0.2 seconds to write; `written` has when it began, and the state."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.written = []
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        self.set_model(model)

    def _write(self, name, state):
        self.written.append((time.perf_counter(), json.loads(state)))
        time.sleep(0.2)

    def train(self, steps: int, seconds: float):
        self.set_params({"steps": steps})
        self.on_epoch_begin(0)
        for batch in range(steps):
            time.sleep(seconds)
            self.on_train_batch_end(batch, {"loss": 1.0})


def test_an_epoch_s_time_is_that_of_its_steps_alone(tmp_path):
    """Without writing checkpoints, here after the first step and the last, and without scoring."""
    checkpoints, began = Slow(tmp_path, minutes=1e-9), time.perf_counter()
    checkpoints.train(steps=3, seconds=0.01)
    assert 3 * 0.01 <= checkpoints.seconds <= time.perf_counter() - began - 2 * 0.2
    checkpoints = Slow(tmp_path, minutes=0)
    checkpoints.train(steps=3, seconds=0.01)
    steps = checkpoints.seconds
    time.sleep(0.05)
    checkpoints.save()  # as after SIGTERM while the epoch was scored
    ((_, state),) = checkpoints.written
    assert state["seconds"] == steps


def test_a_checkpoint_is_due_so_many_minutes_after_the_last(tmp_path):
    """Of an epoch that goes on, 30 seconds in, which do not count."""
    checkpoints, began = Slow(tmp_path, minutes=0.1 / 60), time.perf_counter()
    checkpoints.seconds = 30.0
    checkpoints.train(steps=12, seconds=0.03)
    times = [began, *(start for start, _ in checkpoints.written)]
    assert len(times) > 2
    assert times[1] - times[0] >= 0.1
    assert all(later - one >= 0.1 + 0.2 for one, later in itertools.pairwise(times[1:]))
    assert checkpoints.seconds >= 30 + 12 * 0.03
    never = Slow(tmp_path, minutes=0)
    never.train(steps=3, seconds=0.01)
    assert never.written == []


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
