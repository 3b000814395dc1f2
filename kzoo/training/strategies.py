"""Where a run trains: on one device, on all devices of a machine, or on several machines.

`open_strategy` opens the strategy that the user names, or the one that uses all devices and processes.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import keras

from kzoo.data.wrapped_batches import WorkerRows
from kzoo.errors import UserError, WorkerError, first_line, nearest, one_line
from kzoo.training.processes import KERAS_PROCESSES, TF_CONFIG, VARIABLES, names_processes

EXAMPLE = (
    '{"cluster": {"worker": ["10.0.0.1:2222", "10.0.0.2:2222"]}, "task": {"type": "worker", "index": 0}}'
)
LOST_A_WORKER = (
    "lost the connection to another worker: see its output, then restart all workers; "
    "the run resumes from its last checkpoint"
)


class Strategy:
    """Training on one device; also the base class of the other strategies.

    Use it as a context manager around the run. Create models inside `scope`, and train them on the batches
    from `share`.

    Attributes:
        replicas: int. Devices that share a batch, over all workers.
        devices: int. Devices that share a batch or a model, over all workers.
        accumulates_and_scales: bool. Whether Keras accumulates gradients and scales float16 losses correctly.
        workers, worker: int. Number of processes that train together, and the index of this one.
    """

    backends = ("tensorflow", "jax", "torch")
    replicas = devices = 1
    workers, worker = 1, 0
    accumulates_and_scales = True

    def __str__(self) -> str:
        others = f", worker {self.worker + 1} of {self.workers}" if self.workers > 1 else ""
        return f"{self.replicas} device{'s' if self.replicas > 1 else ''}{others}"

    @property
    def is_chief(self) -> bool:
        """Whether this worker writes the run's folder."""
        return self.worker == 0

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if self.workers == 1 or error is None:
            return
        if isinstance(error, UserError | OSError):
            raise WorkerError(str(error) if isinstance(error, UserError) else one_line(error)) from error
        if self._lost_a_worker(error):
            raise WorkerError(LOST_A_WORKER) from error

    def scope(self) -> contextlib.AbstractContextManager:
        """Return the context for creating the model and optimizer, and for restoring their weights."""
        return contextlib.nullcontext()

    def share(self, batches: keras.utils.PyDataset) -> keras.utils.PyDataset:
        """Return the batches with this worker's rows only. All workers iterate over the same batches."""
        if self.replicas == 1:
            return batches
        return WorkerRows(batches, self.replicas, self.workers, self.worker)

    @contextlib.contextmanager
    def write_path(self, path: Path) -> Iterator[Path]:
        """Yield `path` to the chief, and a path that is removed afterwards to the other workers.

        All workers write there, because reading weights may need all of them.
        """
        if self.is_chief:
            yield path
            return
        with TemporaryDirectory() as folder:
            yield Path(folder) / path.name

    def total(self, number: float) -> float:
        """Return the sum of all workers' numbers. Waits for all workers."""
        return number

    def from_chief(self, number: float) -> float:
        """Return the chief's number on every worker. Waits for all workers."""
        return self.total(number if self.is_chief else 0.0)

    def barrier(self):
        """Wait for all workers."""
        self.total(0.0)

    @contextlib.contextmanager
    def shared_errors(self) -> Iterator[None]:
        """Run the block on all workers. If it fails on one, all raise. Waits for all workers.

        Raises:
            UserError, OSError: it failed on this worker.
            UserError: it failed on another worker.
        """
        failure = None
        try:
            yield
        except (UserError, OSError) as error:
            failure = error
        try:
            none_fails = self.total(float(failure is not None)) == 0
        except Exception:  # the others have exited already; each backend has its own error classes
            if failure is None:
                raise
            none_fails = False
        if not none_fails:
            raise failure or UserError("another worker cannot continue: see its output")

    def check_same(self, what: str, value: str):
        """Raise `UserError` if this worker's value differs from the chief's. Waits for all workers.

        `what` names the difference in the message, for example "another recipe".
        """
        number = int(hashlib.sha256(value.encode()).hexdigest()[:6], 16)  # exact as a float32
        if self.from_chief(number) != number:
            raise UserError(
                f"worker {self.worker + 1} has {what} than worker 1: start all of them with the same command"
            )

    def any_worker(self, flag: bool, step: int) -> bool:
        """Return whether any worker's flag is set; at a given step, all workers get the same answer.

        Several workers exchange flags only at every 16th step; at other steps, they get `False`.
        """
        if self.workers == 1:
            return flag
        return step % 16 == 0 and self.total(float(flag)) > 0

    def same_logs(self) -> list[keras.callbacks.Callback]:
        """Return callbacks that give all workers the chief's logs. Place them after those that measure."""

        def take_chiefs(epoch, logs):  # logs decide whether training stops
            for name in sorted(logs):
                logs[name] = self.from_chief(float(logs[name]))

        return [keras.callbacks.LambdaCallback(on_epoch_end=take_chiefs)] if self.workers > 1 else []

    def _check_equal(self, own: int, devices: int):
        """Raise `WorkerError` if workers have different numbers of devices."""
        if own * self.workers != devices:
            raise WorkerError(
                f"worker {self.worker + 1} has {own} of the {devices} devices of {self.workers} workers: "
                "give each the same number, for example with CUDA_VISIBLE_DEVICES"
            )

    def _lost_a_worker(self, error: BaseException) -> bool:
        return False


class Mirrored(Strategy):
    """`tf.distribute.MirroredStrategy`: a copy of the model on each GPU of this machine."""

    backends = ("tensorflow",)
    accumulates_and_scales = False

    def __init__(self):
        import tensorflow as tf

        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        self._strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
        self.replicas = self.devices = len(devices)

    def scope(self):
        return self._strategy.scope()


class MultiWorker(Mirrored):
    """`tf.distribute.MultiWorkerMirroredStrategy`: a copy on each GPU of the machines in TF_CONFIG."""

    def __init__(self):
        import tensorflow as tf

        cluster = tf.distribute.cluster_resolver.TFConfigClusterResolver()
        workers = cluster.cluster_spec().as_dict() if os.environ.get(TF_CONFIG) else {}
        if not workers:
            raise UserError(f"multi_worker needs the environment variable {TF_CONFIG}, for example {EXAMPLE}")
        self._strategy = strategy = _own_batches()
        self.workers, self.worker = place(workers, cluster.task_type, cluster.task_id)
        self.replicas = self.devices = strategy.num_replicas_in_sync
        self._check_equal(len(strategy.extended.worker_devices), self.replicas)
        self._sum = tf.function(
            lambda number: strategy.reduce("SUM", strategy.run(lambda x: x, (number,)), axis=None)
        )

    def total(self, number: float) -> float:
        import tensorflow as tf

        return float(self._sum(tf.constant(number, "float64"))) * self.workers / self.replicas

    def _lost_a_worker(self, error):
        import tensorflow as tf

        lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
        return isinstance(error, lost)


def place(cluster: dict[str, list[str]], kind: str, index: int) -> tuple[int, int]:
    """Return the number of workers in a cluster, and the number of one of them, from 0.

    A cluster may have a `chief` in addition to its `worker`s; the chief is then number 0.
    """
    chiefs = len(cluster.get("chief", []))
    return chiefs + len(cluster.get("worker", [])), index + (chiefs if kind == "worker" else 0)


def _own_batches():
    """Return a `MultiWorkerMirroredStrategy` for batches that contain only this worker's rows."""
    import tensorflow as tf

    class OwnBatches(tf.distribute.MultiWorkerMirroredStrategy):
        def experimental_distribute_dataset(self, dataset, options=None):
            """Split a batch among this worker's replicas. TensorFlow would split it among all workers'."""
            local = len(self.extended.worker_devices)

            def parts(*batch):
                split = tf.nest.map_structure(
                    lambda x: tf.reshape(x, tf.concat([[local, -1], tf.shape(x)[1:]], 0)), batch
                )
                return tf.data.Dataset.from_tensor_slices(split)

            dataset = dataset if local == 1 else dataset.flat_map(parts)
            return self.distribute_datasets_from_function(lambda context: dataset)

        def reduce(self, reduce_op, value, axis):
            """Also accept values that Keras passes but TensorFlow cannot reduce."""
            if tf.nest.is_nested(value):  # a batch; Keras uses only its shapes
                return tf.nest.map_structure(lambda part: self.experimental_local_results(part)[0], value)
            if axis is not None and self.experimental_local_results(value)[0].shape.rank == 0:
                axis = None  # a scalar has no axis
            return super().reduce(reduce_op, value, axis)

    return OwnBatches()


class DataParallel(Strategy):
    """`keras.distribution.DataParallel`: a copy on each device, of this machine or of all processes."""

    backends = ("jax",)

    def __init__(self):
        if any(os.environ.get(name) for name in KERAS_PROCESSES):
            # Without a seed, Keras would draw one over all processes. The run sets its own seed later.
            keras.utils.set_random_seed(0)
            keras.distribution.initialize()
            import jax

            self.workers, self.worker = jax.process_count(), jax.process_index()
            self._check_equal(jax.local_device_count(), jax.device_count())
        self._distribution = self._distribute()
        self.replicas = self._distribution.num_model_replicas
        self.devices = max(self.replicas, self.devices)

    def _distribute(self):
        return keras.distribution.DataParallel(auto_shard_dataset=False)

    def __enter__(self):
        self._before = keras.distribution.distribution()
        keras.distribution.set_distribution(self._distribution)
        return self

    def __exit__(self, *failure):
        keras.distribution.set_distribution(self._before)
        super().__exit__(*failure)

    def total(self, number: float) -> float:
        if self.workers == 1:
            return number
        import numpy as np
        from jax.experimental import multihost_utils

        return float(multihost_utils.process_allgather(np.float32(number)).sum())

    def _lost_a_worker(self, error):
        # JAX has no class for it: a RuntimeError, at a program's start a ValueError, says what went wrong.
        signs = ("UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED", "Gloo", "NCCL", "heartbeat")
        return isinstance(error, RuntimeError | ValueError) and any(sign in str(error) for sign in signs)


class ModelParallel(DataParallel):
    """`keras.distribution.ModelParallel`: large weights are split over the devices of this machine."""

    def _distribute(self):
        if self.workers > 1:
            raise UserError(
                "model_parallel splits a model within one machine: "
                f"unset {', '.join(KERAS_PROCESSES)}, or use data_parallel"
            )
        devices = keras.distribution.list_devices()
        self.devices = len(devices)
        return model_parallel(devices)

    def __str__(self):
        return f"a model split over {self.devices} device{'s' if self.devices > 1 else ''}"


def model_parallel(devices: list[str]) -> "SplitModel":
    """Return the distribution that splits the large weights among the devices."""
    mesh = keras.distribution.DeviceMesh((1, len(devices)), ("batch", "model"), devices)
    layouts = keras.distribution.LayoutMap(mesh)
    for pattern, axes in weight_layouts().items():
        layouts[pattern] = axes
    return SplitModel(layout_map=layouts, batch_dim_name="batch", auto_shard_dataset=False)


def weight_layouts() -> dict[str, tuple[str | None, ...]]:
    """Return the layouts of all families: a strategy is opened before its model is known."""
    # Here, because processes must connect before a library computes anything.
    from kzoo.models import AttentionBridgeBackbone, RecurrentBackbone, TransformerBackbone

    families = TransformerBackbone, RecurrentBackbone, AttentionBridgeBackbone
    return {pattern: axes for family in families for pattern, axes in family.layouts.items()}


class SplitModel(keras.distribution.ModelParallel):
    """`ModelParallel` whose error names the weight that cannot be divided."""

    def get_variable_layout(self, variable):
        layout = super().get_variable_layout(variable)
        devices = self.device_mesh.shape[-1]
        for size, axis in zip(variable.shape, layout.axes, strict=True):
            if axis == "model" and size % devices:
                raise UserError(
                    f"model_parallel cannot split {variable.path} {tuple(variable.shape)} over {devices} "
                    f"devices: {size} is not divisible by {devices}; use data_parallel, or other widths"
                )
        return layout


STRATEGIES = {
    "one": Strategy,
    "mirrored": Mirrored,
    "multi_worker": MultiWorker,
    "data_parallel": DataParallel,
    "model_parallel": ModelParallel,
}
# Each backend's default strategies: for several processes, and for several devices of one process.
SEVERAL = {"tensorflow": ("multi_worker", "mirrored"), "jax": ("data_parallel", "data_parallel")}


def open_strategy(name: str | Strategy = "") -> Strategy:
    """Return a strategy, connected to its other workers if it has any.

    Call it before the backend computes anything: afterwards, TensorFlow and JAX cannot join other processes.

    Args:
        name: one of `STRATEGIES`, or a strategy, which is returned. Empty: the processes that the environment
            names; if it names none, all GPUs if there are several, else one device.

    Raises:
        UserError: an unknown name, a strategy that the backend lacks, or invalid environment variables.
    """
    if isinstance(name, Strategy):
        return name
    backend = keras.backend.backend()
    name = name or _default(backend, keras.distribution.list_devices)
    if name not in STRATEGIES:
        raise UserError(f"there is no strategy {name!r}; {nearest(name, list(STRATEGIES))}")
    kind = STRATEGIES[name]
    if backend not in kind.backends:
        available = [other for other, strategy in STRATEGIES.items() if backend in strategy.backends]
        raise UserError(
            f"strategy {name} needs the backend {' or '.join(kind.backends)} (KERAS_BACKEND): "
            f"{backend} has {', '.join(available)}"
        )
    try:
        opened = kind()
    except UserError:
        raise
    except Exception as error:  # each backend has its own error classes
        advice = ""
        if names_processes(backend):
            advice = f": check that all workers run at the addresses in {VARIABLES[backend][0]}"
        raise UserError(f"strategy {name} cannot start ({first_line(error):.160}){advice}") from None
    print(f"strategy {name}: {opened}")
    return opened


def _default(backend: str, list_devices: Callable[[], list[str]]) -> str:
    """Return the strategy that uses everything available to the backend."""
    processes, devices = SEVERAL.get(backend, ("one", "one"))
    if names_processes(backend):
        return processes
    if named := names_processes():  # each of them would train alone
        raise UserError(
            f"the environment names workers for another backend than {backend}: set KERAS_BACKEND, or unset "
            f"{' and '.join(named)}"
        )
    if devices == "one":
        return devices
    try:
        found = list_devices()
    except Exception as error:  # each backend has its own error classes
        raise UserError(f"{backend} finds no device ({first_line(error):.160})") from None
    return devices if sum(not name.startswith("cpu") for name in found) > 1 else "one"
