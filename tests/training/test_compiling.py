"""How a training step is compiled: the choice with stubbed times; timing leaves a run as it was."""

import os
import platform
import subprocess
import sys
import threading
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from keras import ops

from kzoo.cli import training as command
from kzoo.data import Batches
from kzoo.layers import Dropout
from kzoo.models import LabelSmoothedCrossEntropy
from kzoo.presets import pope_tiny
from kzoo.training import compiling
from kzoo.training.compiling import (
    FUSED,
    GRAPH,
    RECORD,
    XLA,
    compile_shapes,
    compile_step,
    fastest,
    step_seconds,
    training_step,
    ways_of,
)
from kzoo.training.strategies import open_strategy

TENSORFLOW = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="others have no choice")
SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16, "max_length": 16}


def translator(dtype="mixed_bfloat16"):
    keras.utils.set_random_seed(1)
    model = pope_tiny(source_vocabulary_size=30, dropout=0.2, dtype=dtype, **SIZES)
    model.compile(keras.optimizers.Adam(1e-2), LabelSmoothedCrossEntropy())
    return model


PAGES_OF_STEPS = """
import resource, jax, jax.numpy as jnp
from kzoo.training.compiling import tune_process
tune_process()
ones, double = jnp.ones(2**24, "float32"), jax.jit(lambda x: 2 * x)
for _ in range(100):
    double(ones).block_until_ready()
    print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt)
"""


@pytest.mark.skipif(keras.backend.backend() != "jax", reason="the setting is for JAX")
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="is about glibc's memory")
def test_steps_reuse_the_memory_of_earlier_ones():
    """The arrays have 64 MiB, which is 16,384 pages; the process soon has room for them."""
    own = {key: value for key, value in os.environ.items() if not key.startswith(("MALLOC_", "GLIBC_"))}
    run = subprocess.run([sys.executable, "-c", PAGES_OF_STEPS], env=own, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    new_pages = np.diff(np.array(run.stdout.split(), int))
    assert (new_pages[50:] > 1000).sum() < 10


@pytest.fixture
def times(monkeypatch, xla_backends):
    """Stand in for the measurement; a run in which there is none to make fails."""
    xla_backends("tensorflow", "jax")
    found = {}

    def stub(model, steps, batches):
        assert found, "this is not to be timed"
        assert [*found] == [*steps]
        return dict(found)

    monkeypatch.setattr(compiling, "step_seconds", stub)
    return found


@pytest.mark.parametrize(
    ("seconds", "way"),
    [
        ((2.0, 1.9, 1.85), XLA),  # noise
        ((2.0, 1.9, 1.7), FUSED),
        ((2.0, 1.5, 1.7), GRAPH),
        ((0.3, 0.7, 0.4), XLA),
    ],
)
def test_another_way_must_be_faster_by_more_than_noise(seconds, way):
    assert fastest(dict(zip((XLA, GRAPH, FUSED), seconds, strict=True))) == way


@TENSORFLOW
def test_a_run_is_compiled_in_the_fastest_way_and_keeps_it(times, tmp_path):
    times |= {XLA: 4.0, GRAPH: 3.0, FUSED: 2.0}
    model = translator()
    record = compile_step(model, None, planned=5000, resumes=False, folder=tmp_path)
    assert record == {"way": FUSED, "seconds": times}
    assert not model.jit_compile
    chosen = model.train_function
    times.clear()
    model = translator()
    assert model.jit_compile
    assert compile_step(model, None, planned=5000, resumes=True, folder=tmp_path) == record
    assert not model.jit_compile
    assert model.train_function.__name__ == chosen.__name__ == "fused"


@TENSORFLOW
def test_a_record_of_a_run_that_never_began_is_not_taken(times, tmp_path):
    (tmp_path / RECORD).write_text('{"way": "graph"}')
    times |= {XLA: 1.0, GRAPH: 2.0, FUSED: 2.0}
    assert compile_step(translator(), None, planned=5000, resumes=False, folder=tmp_path)["way"] == XLA


@TENSORFLOW
@pytest.mark.usefixtures("times")
def test_a_short_run_does_not_keep_the_record_of_a_run_that_never_began(tmp_path):
    """It would take it when it is resumed."""
    (tmp_path / RECORD).write_text('{"way": "graph"}')
    for resumes in (False, True):
        model = translator()
        assert compile_step(model, None, planned=10, resumes=resumes, folder=tmp_path) == {"way": XLA}
        assert model.jit_compile


@TENSORFLOW
@pytest.mark.parametrize(("planned", "resumes"), [(10, False), (5000, True)])
def test_short_runs_and_those_of_earlier_versions_are_compiled_by_xla(planned, resumes, times, tmp_path):
    model = translator()
    assert compile_step(model, None, planned=planned, resumes=resumes, folder=tmp_path) == {"way": XLA}
    assert model.jit_compile
    assert not [*tmp_path.iterdir()]


def test_without_a_choice_nothing_is_timed(times, tmp_path):
    model = translator("float32")
    assert compile_step(model, None, planned=5000, resumes=False, folder=tmp_path) == {}
    half = translator()
    if keras.backend.backend() == "tensorflow":
        with open_strategy("mirrored").scope():
            assert ways_of(half) == []
    else:
        assert compile_step(half, None, planned=5000, resumes=False, folder=tmp_path) == {}


def test_a_model_of_several_devices_has_no_choice_outside_of_its_scope_either(monkeypatch):
    """`train` compiles it there."""
    import tensorflow as tf

    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    half, backbone = SimpleNamespace(compute_dtype="bfloat16"), SimpleNamespace(xla_backends=())
    for strategy, ways in (
        (tf.distribute.get_strategy(), [GRAPH, FUSED]),
        (tf.distribute.MirroredStrategy(["/cpu:0"]), []),
    ):
        model = SimpleNamespace(dtype_policy=half, backbone=backbone, distribute_strategy=strategy)
        assert ways_of(model) == ways


class SomeBatches(keras.utils.PyDataset):
    def __len__(self):
        return 4

    def __getitem__(self, index):
        return np.full((2, 3 + index % 2), index, "int32"), np.ones((2, 3 + index % 2, 1), "float32")


@TENSORFLOW
def test_timing_leaves_no_trace_in_a_run():
    """Weights, optimizer and seeds are as before; and the run has the numbers of one that was not timed."""

    def fresh():
        keras.utils.set_random_seed(1)
        layers = [keras.layers.Embedding(4, 8), Dropout(0.5), keras.layers.Dense(1)]
        model = keras.Sequential(layers)
        model.compile(keras.optimizers.Adam(0.1), "mse")
        model.build((2, None))
        model.optimizer.build(model.trainable_variables)
        return model

    def state(model):
        return [ops.convert_to_numpy(v) for v in (*model.variables, *model.optimizer.variables)]

    timed, other = fresh(), fresh()
    before = state(timed)
    steps = {way: training_step(timed, way) for way in (GRAPH, FUSED)}
    seconds = step_seconds(timed, steps, SomeBatches())
    assert [*seconds] == [GRAPH, FUSED]
    assert min(seconds.values()) > 0
    for one, wanted in zip(state(timed), before, strict=True):
        np.testing.assert_array_equal(one, wanted)
    timed.train_function, other.train_function = steps[GRAPH], training_step(other, GRAPH)
    for model in (timed, other):
        model.fit(SomeBatches(), epochs=2, shuffle=False, verbose=0)
    for one, wanted in zip(state(timed), state(other), strict=True):
        np.testing.assert_array_equal(one, wanted)


def test_the_command_allows_fusing_before_the_backend_computes(monkeypatch):
    """Afterwards, TensorFlow does not read its flags again."""

    class Started(Exception):
        pass

    def start():
        raise Started(os.environ["TF_XLA_FLAGS"])

    monkeypatch.setenv("TF_XLA_FLAGS", "")
    monkeypatch.setattr(command, "start_devices", start)
    with pytest.raises(Started, match="FUSIBLE"):
        command.train(["pope_multi30k"])


def pairs(count=40):
    random = np.random.default_rng(1)
    sides = ([list(random.integers(4, 30, random.integers(1, 12))) for _ in range(count)] for _ in range(2))
    return Batches(*sides, tokens=60, num_shapes=3, seed=1)


@TENSORFLOW
def test_each_shape_is_compiled_once_and_several_at_once(xla_backends):
    xla_backends("tensorflow")
    model, batches, seen = translator("float32"), pairs(), []
    together = threading.Barrier(min(2, os.cpu_count()))

    def step(iterator):
        inputs, *_ = next(iterator)
        seen.append(tuple(inputs["source"].shape))
        if len(seen) <= together.parties:
            together.wait(timeout=60)
        return {"loss": 0.0}

    model.train_function = step
    compile_shapes(model, batches)
    assert sorted(seen) == sorted(set(batches.shapes))
    assert model.train_function is step


@TENSORFLOW
def test_compiling_the_shapes_leaves_training_as_it_is(xla_backends):
    xla_backends("tensorflow")
    weights = []
    for compiles in (False, True):
        model = translator("float32")
        if compiles:
            compile_shapes(model, pairs())
        model.fit(pairs(), epochs=2, shuffle=False, verbose=0)
        variables = [*model.variables, *model.optimizer.variables]
        weights.append([ops.convert_to_numpy(variable) for variable in variables])
    for before, after in zip(*weights, strict=True):
        np.testing.assert_array_equal(before, after)
