"""Compiles a run's training step: in the fastest way on this machine, and for all batch shapes."""

import contextlib
import ctypes
import json
import os
import platform
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import keras
import numpy as np
from keras import ops

from kzoo.data.wrapped_batches import MadeBatches
from kzoo.files import write_json
from kzoo.models.backbones import uses_xla

XLA, GRAPH, FUSED = "XLA", "graph", "fused graph"
RECORD = "compiled.json"
# A shorter run saves less than the timing costs: compiling each way takes up to a minute.
LEAST_STEPS = 1000
GAIN = 0.9  # another way must take less than this share of the first way's time, to exclude noise
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # of glibc's malloc.h
TIMED = 2  # timed passes over two batches; the fastest counts
LOOKED_AT = 100  # batches, to find one of each shape
AT_ONCE = 4  # shapes that are compiled, and whose first step is run; each takes memory


def tune_process():
    """Let TensorFlow fuse element-wise operations and JAX reuse memory, which makes steps faster on a CPU.

    Sets TensorFlow's flags and, for JAX, how glibc allocates memory until the process ends, unless the user's
    environment does. Call this before the backend computes anything: later, it has little or no effect.
    """
    given = os.environ.get("TF_XLA_FLAGS", "")
    wanted = "--tf_xla_cpu_global_jit --tf_xla_ops_to_cluster=FUSIBLE"
    if wanted not in given:
        os.environ["TF_XLA_FLAGS"] = f"{wanted} {given}".strip()
    chosen = any(name.startswith(("MALLOC_", "GLIBC_TUNABLES")) for name in os.environ)
    if keras.backend.backend() == "jax" and platform.libc_ver()[0] == "glibc" and not chosen:
        # By default, glibc returns large freed arrays to the system, and each step gets them back page by
        # page: `kzoo train pope_multi30k` took 1.2 to 1.3 times as long per token.
        libc = ctypes.CDLL(None)
        for setting in (M_ARENA_MAX, 1), (M_MMAP_MAX, 0), (M_TRIM_THRESHOLD, -1):
            libc.mallopt(*setting)


def compile_step(
    model: keras.Model, batches: keras.utils.PyDataset, planned: int, resumes: bool, folder: Path
) -> dict:
    """Choose the fastest way to compile a translator's training step, by timing a few steps.

    Afterwards, weights, optimizer and random seeds are as before. A run shorter than `LEAST_STEPS` uses the
    first way untimed. The choice is written to the run's folder, and a resumed run keeps it.

    Args:
        model: compiled, with its initial weights.
        batches: the training batches.
        planned: int. The run's planned steps.
        resumes: whether the run resumes.
        folder: the run's folder.

    Returns:
        `"way"` and, if timed, `"seconds"` per step in each way; empty if there is no choice.
    """
    ways, path = ways_of(model), folder / RECORD
    if not ways:
        return {}
    steps = {way: training_step(model, way) for way in ways}
    if resumes:
        record = json.loads(path.read_text("utf-8")) if path.exists() else {"way": ways[0]}
    elif planned < LEAST_STEPS:
        record = {"way": ways[0]}
        path.unlink(missing_ok=True)  # of a run that never began: this run would read it on resuming
    else:
        print(f"timing {', '.join(ways)} …", flush=True)
        seconds = step_seconds(model, steps, batches)
        record = {"way": fastest(seconds), "seconds": seconds}
        write_json(path, record)
    model.jit_compile, model.train_function = record["way"] == XLA, steps[record["way"]]
    return record


def ways_of(model: keras.Model) -> list[str]:
    """Return the ways to choose from, the default first; none if there is no choice.

    Only TensorFlow on one device, below float32, has a choice: XLA computes such matrix products itself and
    may not use the processor's fast ones. In float32, no other way was faster than the first.
    """
    if not _on_tensorflow_alone(model) or model.dtype_policy.compute_dtype == "float32":
        return []
    return [XLA, GRAPH, FUSED] if uses_xla(model.backbone) else [GRAPH, FUSED]


def compile_shapes(model: keras.Model, batches: keras.utils.PyDataset):
    """Compile the training step for the shapes of the batches, several at once.

    `fit` would compile one after the other, each on one core: seven shapes of a small Transformer take about
    a minute. Afterwards, weights, optimizer and random seeds are as before. It is for TensorFlow with XLA on
    a CPU: JAX would trace several steps at once, in which Keras mixes up what `add_loss` adds.

    Args:
        model: compiled.
        batches: the training batches. A shape that is not among the first ones is compiled when it comes.
    """
    if not (_on_tensorflow_alone(model) and model.jit_compile) or _has_gpu():
        return
    made = {}
    for number in range(min(LOOKED_AT, len(batches))):
        batch = batches[number]
        made.setdefault(str([array.shape for array in keras.tree.flatten(batch)]), batch)
    if len(made) < 2:
        return
    model.make_train_function()
    step = model.train_function

    def all_shapes(iterator):
        with ThreadPoolExecutor(min(AT_ONCE, os.cpu_count() or 1)) as pool:
            return list(pool.map(lambda _: step(iterator), made))[0]

    with _unchanged(model):
        model.train_function = all_shapes
        try:
            model.fit(MadeBatches(made.values()), steps_per_epoch=1, shuffle=False, verbose=0)
        finally:
            model.train_function = step


def _on_tensorflow_alone(model: keras.Model) -> bool:
    """Tell whether a model is trained on TensorFlow, and not by one of its strategies."""
    if keras.backend.backend() != "tensorflow":
        return False
    import tensorflow as tf

    with model.distribute_strategy.scope():  # the steps are compiled outside of it
        return not tf.distribute.has_strategy()


def _has_gpu() -> bool:
    """Tell whether TensorFlow has a GPU, whose memory may hold one step, but not several."""
    import tensorflow as tf

    return bool(tf.config.list_logical_devices("GPU"))


def training_step(model: keras.Model, way: str) -> Callable:
    """Return Keras's training function for one way; it is compiled on its first call."""
    model.jit_compile = way == XLA
    model.make_train_function(force=True)
    return _fusing(model.train_function) if way == FUSED else model.train_function


def _fusing(function: Callable) -> Callable:
    """Wrap a function so that XLA compiles only its element-wise operations."""
    import tensorflow as tf

    def fused(iterator):
        before = tf.config.optimizer.get_jit()
        tf.config.optimizer.set_jit("autoclustering")
        try:
            return function(iterator)
        finally:
            tf.config.optimizer.set_jit(before)

    return fused


def step_seconds(
    model: keras.Model, steps: dict[str, Callable], batches: keras.utils.PyDataset
) -> dict[str, float]:
    """Return the seconds per training step in each way, on the first two batches, which differ in length."""
    # Keras infers the same shapes from two batches as from all, so it compiles once.
    few, seconds = MadeBatches(batches[number] for number in range(min(2, len(batches)))), {}
    with _unchanged(model):
        for way, step in steps.items():
            model.train_function, ends = step, []
            clock = keras.callbacks.LambdaCallback(
                on_epoch_end=lambda *_, ends=ends: ends.append(time.perf_counter())
            )
            model.fit(few, epochs=1 + TIMED, shuffle=False, verbose=0, callbacks=[clock])
            seconds[way] = float(min(np.diff(ends))) / len(few)  # the first pass compiles
    return seconds


def fastest(seconds: dict[str, float]) -> str:
    """Return the fastest way, but the first unless another is faster by more than noise."""
    best, first = min(seconds, key=seconds.get), next(iter(seconds))
    return best if seconds[best] < GAIN * seconds[first] else first


@contextlib.contextmanager
def _unchanged(model: keras.Model):
    """Restore the weights, optimizer and random seeds after the block."""
    if not model.optimizer.built:  # one that scales the loss would be built twice
        model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    values = [ops.convert_to_numpy(variable) for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
