"""How a training step is compiled: fused in bfloat16; all shapes at once, which leaves a run as it was."""

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
from kzoo.models import LabelSmoothedCrossEntropy
from kzoo.presets import pope_tiny
from kzoo.training import compiling
from kzoo.training.compiling import compile_shapes, compile_step
from kzoo.training.strategies import open_strategy

TENSORFLOW = pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is about its ways")
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


@pytest.mark.parametrize("dtype", ["float32", "mixed_bfloat16"])
@pytest.mark.parametrize("fast", [False, True])
def test_a_step_in_bfloat16_is_fused_where_the_processor_multiplies_it_fast(
    dtype, fast, monkeypatch, xla_backends
):
    xla_backends("tensorflow", "jax")
    monkeypatch.setattr(compiling, "multiplies_bfloat16_fast", lambda: fast)
    model, on_tensorflow = translator(dtype), keras.backend.backend() == "tensorflow"
    compile_step(model)
    fused = on_tensorflow and fast and dtype == "mixed_bfloat16"
    assert (model.train_function is not None) == fused
    assert model.jit_compile != fused
    if fused:
        losses = model.fit(pairs(), epochs=2, shuffle=False, verbose=0).history["loss"]
        whole = translator(dtype)
        wanted = whole.fit(pairs(), epochs=2, shuffle=False, verbose=0).history["loss"]
        np.testing.assert_allclose(losses, wanted, rtol=0.02)
    if on_tensorflow:
        with open_strategy("mirrored").scope():
            model = translator(dtype)
            compile_step(model)
        assert model.train_function is None


def test_a_model_of_several_devices_is_not_fused_outside_of_its_scope_either(monkeypatch):
    """`train` compiles it there."""
    import tensorflow as tf

    monkeypatch.setattr(keras.backend, "backend", lambda: "tensorflow")
    monkeypatch.setattr(compiling, "multiplies_bfloat16_fast", lambda: True)
    half, backbone = SimpleNamespace(compute_dtype="bfloat16"), SimpleNamespace(xla_backends=("tensorflow",))
    strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
    model = SimpleNamespace(dtype_policy=half, backbone=backbone, distribute_strategy=strategy)
    compile_step(model)
    assert not hasattr(model, "train_function")


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
