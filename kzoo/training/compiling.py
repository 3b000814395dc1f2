"""How a run's training step is compiled: in the way that a short measurement finds the fastest here."""

import contextlib
import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import keras
import numpy as np
from keras import ops

from kzoo.files import write_json
from kzoo.models.backbones import uses_xla

XLA, GRAPH, FUSED = "XLA", "graph", "fused graph"
RECORD = "compiled.json"
# A shorter run would take longer to compile all ways than the fastest saves: up to a minute each.
LEAST_STEPS = 1000
GAIN = 0.9  # of the time: what another way must stay below, or else noise would choose
TIMED = 2  # passes over two batches, of which the faster counts


def allow_fusing():
    """Let TensorFlow compile element-wise operations; once it has computed something, this has no effect."""
    given = os.environ.get("TF_XLA_FLAGS", "")
    wanted = "--tf_xla_cpu_global_jit --tf_xla_ops_to_cluster=FUSIBLE"
    if wanted not in given:
        os.environ["TF_XLA_FLAGS"] = f"{wanted} {given}".strip()


def compile_step(
    model: keras.Model, batches: keras.utils.PyDataset, planned: int, resumes: bool, folder: Path
) -> dict:
    """Compile a translator's training step in the way that is fastest here, by timing a few steps.

    They leave nothing behind: weights, optimizer and random seeds are as before. A short run, of fewer than
    `LEAST_STEPS`, is not timed. The choice is written into the run's folder; a run that resumes keeps it.

    Args:
        model: compiled, with its first weights.
        batches: what it will be trained on.
        planned: int. The run's steps.
        resumes: whether the run has been trained already.
        folder: the run's.

    Returns:
        `"way"`, and, if it was timed, the `"seconds"` of a step in each way; empty if there is no choice.
    """
    ways, path = ways_of(model), folder / RECORD
    if not ways:
        return {}
    steps = {way: training_step(model, way) for way in ways}
    if resumes:
        record = json.loads(path.read_text("utf-8")) if path.exists() else {"way": ways[0]}
    elif planned < LEAST_STEPS:
        record = {"way": ways[0]}
        path.unlink(missing_ok=True)  # of a run that never began, which this run would resume with
    else:
        print(f"timing {', '.join(ways)} …", flush=True)
        seconds = step_seconds(model, steps, batches)
        record = {"way": fastest(seconds), "seconds": seconds}
        write_json(path, record)
    model.jit_compile, model.train_function = record["way"] == XLA, steps[record["way"]]
    return record


def ways_of(model: keras.Model) -> list[str]:
    """Return the ways to choose from, the default first; none if there is no choice.

    There is a choice on one device on TensorFlow below float32: there XLA has matrix products of its own,
    which may lack the processor's fast ones. In float32 no other way was faster than the first.
    """
    if keras.backend.backend() != "tensorflow" or model.dtype_policy.compute_dtype == "float32":
        return []
    import tensorflow as tf

    with model.distribute_strategy.scope():  # the steps are compiled outside of it
        if tf.distribute.has_strategy():
            return []
    return [XLA, GRAPH, FUSED] if uses_xla(model.backbone) else [GRAPH, FUSED]


def training_step(model: keras.Model, way: str) -> Callable:
    """Return Keras's function of a training step, which is compiled when it is called."""
    model.jit_compile = way == XLA
    model.make_train_function(force=True)
    return _fusing(model.train_function) if way == FUSED else model.train_function


def _fusing(function: Callable) -> Callable:
    """Return a function whose element-wise operations alone are compiled."""
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
    """Return the seconds of a training step in each way, on the first two batches, which differ in length."""
    few, seconds = _Few(batches), {}
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
    """Return the fastest way; the first, unless another is faster by more than noise."""
    best, first = min(seconds, key=seconds.get), next(iter(seconds))
    return best if seconds[best] < GAIN * seconds[first] else first


@contextlib.contextmanager
def _unchanged(model: keras.Model):
    """Give weights, optimizer and random seeds their values again after the block."""
    if not model.optimizer.built:  # one that scales the loss would be built twice
        model.optimizer.build(model.trainable_variables)
    variables = [*model.variables, *model.optimizer.variables]
    values = [ops.convert_to_numpy(variable) for variable in variables]
    try:
        yield
    finally:
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)


class _Few(keras.utils.PyDataset):
    """The first two batches, from which Keras infers the same shapes as from all: each is compiled once."""

    def __init__(self, batches: keras.utils.PyDataset):
        super().__init__()
        self._made = [batches[number] for number in range(min(2, len(batches)))]

    def __len__(self) -> int:
        return len(self._made)

    def __getitem__(self, index: int):
        return self._made[index]
