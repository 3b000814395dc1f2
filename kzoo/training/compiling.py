"""Compiles a run's training step in the fastest way, and for all batch shapes."""

import contextlib
import ctypes
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import keras
from keras import ops

from kzoo.data.wrapped_batches import MadeBatches
from kzoo.models.backbones import uses_xla
from kzoo.training.processor import multiplies_bfloat16_fast

XLA, GRAPH, FUSED = "XLA", "graph", "fused graph"
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8  # of glibc's malloc.h
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


def compile_step(model: keras.Model):
    """Fuse a training step in bfloat16, on TensorFlow and one processor that multiplies it fast.

    XLA computes matrix products itself, in bfloat16 not by the processor's fast instructions: a step of
    `pope_small` takes 1.6 times as long (benchmarks/training_step.py). In float32, XLA is the fastest way. A
    recurrent model, which XLA does not compile, takes as long in a graph, whose first step comes sooner. The
    first step of each shape takes half a minute, so a run of a few hundred steps takes longer than with XLA.

    Args:
        model: compiled.
    """
    half = model.dtype_policy.compute_dtype == "bfloat16" and multiplies_bfloat16_fast()
    if half and uses_xla(model.backbone) and _on_tensorflow_alone(model) and not _has_gpu():
        model.train_function = training_step(model, FUSED)


def compile_shapes(model: keras.Model, batches: keras.utils.PyDataset):
    """Compile the training step for the shapes of the batches, several at once.

    `fit` would compile one after the other, each on one core: seven shapes of a small Transformer take about
    a minute. Afterwards, weights, optimizer and random seeds are as before. It is for TensorFlow with XLA on
    a CPU: JAX would trace several steps at once, in which Keras mixes up what `add_loss` adds, and a GPU's
    memory may hold one step only.

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
    """Tell whether TensorFlow has a GPU."""
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
