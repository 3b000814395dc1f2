"""What all tests share: quiet backends, fixed seeds, and where the real data is."""

import ctypes
import functools
import gc
import os
import platform
import sys
import tempfile
import typing
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from random import Random
from types import SimpleNamespace

import pytest
from packaging.version import Version

gc.disable()  # before the backend is imported; `free_memory` collects, once a module
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
# What XLA compiles here runs a few times: compiled badly but fast.
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true "
    "--xla_cpu_multi_thread_eigen=false --xla_cpu_parallel_codegen_split_count=1"
)
try:
    flag_is_known = Version(version("jax")) < Version("0.11")  # an unknown one ends the process
except PackageNotFoundError:
    flag_is_known = True  # to TensorFlow
if flag_is_known:  # in half the time
    FLAGS += " --xla_cpu_use_fusion_emitters=false"
os.environ.setdefault("XLA_FLAGS", FLAGS)
# What several tests compile alike JAX compiles once, and then reads from a file.
COMPILED = tempfile.TemporaryDirectory(prefix="kzoo_xla_")
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", COMPILED.name)
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES", "-1")
os.environ.setdefault("JAX_TRACEBACK_IN_LOCATIONS_LIMIT", "0")  # no Python stack with each operation
os.environ.setdefault("KZOO_KEEP_COMPILED", "0")  # the commands keep nothing in the user's cache
# One thread each: several processes test beside each other.
for threads in ("NPROC", "OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS"):
    os.environ.setdefault(threads, "1")
# Each compilation allocates and frees megabytes, which the kernel would take back and clear anew.
if sys.platform == "linux" and platform.libc_ver()[0] == "glibc":
    M_TRIM_THRESHOLD, M_TOP_PAD, M_MMAP_THRESHOLD, M_ARENA_MAX = -1, -2, -3, -8
    for option, value in (
        (M_TRIM_THRESHOLD, 1 << 30),
        (M_TOP_PAD, 1 << 24),
        (M_MMAP_THRESHOLD, 1 << 25),
        (M_ARENA_MAX, 1),
    ):
        ctypes.CDLL(None).mallopt(option, value)
if os.environ.get("KERAS_BACKEND") == "jax":
    import jax
    from jax._src.interpreters import mlir
    from jax._src.lax.lax import stage_p

    # One MLIR context for all that JAX compiles: a new one each time takes 9 ms, a quarter of the time.
    mlir.make_ir_context = functools.cache(mlir.make_ir_context)
    # NumPy's arrays become JAX's without a program for each shape.
    stage_p.def_impl(jax.device_put)
if os.environ.get("KERAS_BACKEND") == "tensorflow":
    from tensorflow.python.eager import context
    from tensorflow.python.framework import ops as graph_ops
    from tensorflow.python.ops import gen_resource_variable_ops as variable_ops

    # Keep no Python stack with each operation of a graph.
    graph_ops._create_c_op = functools.partial(graph_ops._create_c_op, extract_traceback=False)
    # TensorFlow makes a kernel, in 0.5 ms, for each new set of attributes. A variable's name is one,
    # and with each seed it forgets all kernels, for random operations that have a state: Keras uses none.
    named = variable_ops.var_handle_op
    variable_ops.var_handle_op = lambda *args, debug_name="", **kwargs: named(*args, **kwargs)
    context.Context._set_global_seed = lambda self, seed: vars(self).update(_seed=seed, _rng=Random(seed))
    # What a type's protocol asks for, Python 3.11 looks up again with each `isinstance`.
    typing._get_protocol_attrs = functools.cache(typing._get_protocol_attrs)


@pytest.fixture(autouse=True, scope="session")
def skipped_names():
    """Find the names that Keras does not save once: it forgets to, and makes a layer for each object."""
    if "keras" in sys.modules:
        from keras.src.saving import saving_lib

        saving_lib.get_attr_skipset = functools.cache(saving_lib.get_attr_skipset)


@pytest.fixture(autouse=True, scope="session")
def first_weights():
    """On JAX, make the same first weights with few programs, not several for each shape."""
    keras = sys.modules.get("keras")
    if not keras or keras.backend.backend() != "jax":
        return
    import numpy as np
    from keras.src.initializers import constant_initializers, random_initializers

    def drawn(draw):
        """Take an array's numbers from the first of a longer one's, which are the same."""

        def draw_first(shape, *limits, **options):
            size = int(np.prod(shape))
            more = next(4**n for n in range(5, 32) if 4**n >= size)
            numbers = draw((more,), *limits, **options)
            if isinstance(numbers, jax.core.Tracer):
                return draw(shape, *limits, **options)
            return np.asarray(numbers)[:size].reshape(shape)

        return draw_first

    def in_numpy(ours, theirs):
        return lambda x, *options: (ours if isinstance(x, np.ndarray) else theirs)(x, *options)

    random, ops = random_initializers.random, keras.ops
    draws = {name: drawn(getattr(random, name)) for name in ("normal", "truncated_normal", "uniform")}
    random_initializers.random = SimpleNamespace(**{**vars(random), **draws})
    names = ("diag", "sign", "transpose", "reshape")
    algebra = {name: in_numpy(getattr(np, name), getattr(ops, name)) for name in names}
    random_initializers.ops = SimpleNamespace(qr=in_numpy(np.linalg.qr, ops.qr), **algebra)
    constant_initializers.ops = SimpleNamespace(**{**vars(ops), "zeros": np.zeros, "ones": np.ones})


@pytest.fixture(autouse=True)
def fixed_seed():
    """The same random weights in every run, whatever ran before."""
    if "keras" in sys.modules:  # not imported for tests that need none
        sys.modules["keras"].utils.set_random_seed(1)


@pytest.fixture(autouse=True, scope="module")
def free_memory():
    """Free what earlier modules compiled; hide what else they left from every garbage collection."""
    if "jax" in sys.modules:
        sys.modules["jax"].clear_caches()
    if "keras" in sys.modules:
        sys.modules["keras"].backend.clear_session()  # collects garbage
    else:
        gc.collect()
    if sys.platform == "linux":  # whose C library keeps what was freed
        ctypes.CDLL(None).malloc_trim(0)
    gc.freeze()


@pytest.fixture(autouse=True, scope="module")
def hardly_compiled(request):
    """On TensorFlow only modules marked `xla` optimize graphs: it takes longer than a test runs them."""
    keras = sys.modules.get("keras")
    if not keras or keras.backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    from kzoo.models import TransformerBackbone

    marked = bool(request.node.get_closest_marker("xla"))
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": not marked})
    with pytest.MonkeyPatch.context() as patch:
        if not marked:
            patch.setattr(TransformerBackbone, "xla_backends", ("jax",))
        yield


@pytest.fixture
def xla_backends(monkeypatch):
    """Function that sets the backends on which XLA compiles a Transformer."""
    from kzoo.models import TransformerBackbone

    return lambda *names: monkeypatch.setattr(TransformerBackbone, "xla_backends", names)


@pytest.fixture
def untraced():
    """TensorFlow runs no graphs: for a few calls, to trace one takes longer than it saves."""
    if sys.modules["keras"].backend.backend() != "tensorflow":
        yield
        return
    import tensorflow as tf

    tf.config.run_functions_eagerly(True)
    yield
    tf.config.run_functions_eagerly(False)


@pytest.fixture
def random():
    """A seeded NumPy generator."""
    import numpy as np

    return np.random.default_rng(1)


@pytest.fixture(scope="session")
def shelved():
    """Function from a name on the shelf to its trained translator, loaded once."""
    from kzoo.presets import load

    return functools.cache(load)


@pytest.fixture
def commands_load(monkeypatch):
    """Function from `load` to commands that load presets with it, and start no backend."""

    def chosen(load):
        monkeypatch.setattr("kzoo.presets.shelf.load", load)
        for commands in ("console", "pictures", "plots"):
            monkeypatch.setattr(f"kzoo.cli.{commands}.start_backend", lambda: None)

    return chosen


@pytest.fixture
def one_shape(request, monkeypatch):
    """Searches in one shape, as each is traced and compiled on its own: 8 rows of the model's maximum length.

    A test of many sentences sets `(rows, length)` by its parameters.
    """
    from kzoo.decoding import batched_search, search_settings

    rows, *lengths = getattr(request, "param", (8,))
    monkeypatch.setattr(search_settings, "LENGTHS", tuple(lengths))
    monkeypatch.setattr(batched_search, "ROWS", (rows,))


@pytest.fixture
def zeros(monkeypatch):
    """Matrices of zeros: where only sizes count, an orthogonal one of a base model takes a second."""
    import keras

    for kind in (keras.initializers.Orthogonal, keras.initializers.VarianceScaling):
        monkeypatch.setattr(kind, "__call__", lambda self, shape, dtype=None: keras.ops.zeros(shape, dtype))


@pytest.fixture
def few_scenes(monkeypatch):
    """Scenes with 200 sentences a split: where any will do, to score 1,000 takes half a second."""
    from kzoo.data.corpora import CORPORA
    from kzoo.data.text_files import Text

    def read(split, language):
        return Text(f"scenes/{split}", scenes.read(split, language).sentences[:200])

    scenes = CORPORA["scenes"]
    monkeypatch.setitem(CORPORA, "scenes", replace(scenes, read=read))


@pytest.fixture(scope="session")
def multi30k():
    """The real Multi30k, where it is."""
    from kzoo.data import open_corpus

    if not os.environ.get("KZOO_DATA"):
        pytest.skip("set KZOO_DATA to a folder with multi30k/ to run this test on real data")
    return open_corpus("multi30k")
