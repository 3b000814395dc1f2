"""Where a run trains: on one device, on all devices of a machine, or on several machines.

`train` opens one of `STRATEGIES` by name and from then on uses the object.
"""

import contextlib
import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import keras

from kzoo.data.worker_rows import WorkerRows
from kzoo.errors import UserError, WorkerError, nearest, one_line
from kzoo.files import whole_folder
from kzoo.training.clusters import KERAS_PROCESSES, TF_CONFIG, check_named_for, keras_processes, tf_cluster
from kzoo.training.fatal_errors import LOST_A_WORKER, reworded_fatal_errors
from kzoo.training.layouts import model_parallel


class Strategy:
    """Training on one device; also the base class of the other strategies.

    A context manager around the run. Models are made inside its `scope`, and trained on what
    `share` returns.

    Attributes:
        replicas: int. Devices that share a batch, over all workers.
        devices: int. Devices that compute, whether they share a batch or a model.
        clips_and_scales: bool. Whether Keras accumulates gradients and scales float16 losses correctly.
        workers, worker: ints. Processes that train together, and the number of this one.
    """

    backends = ("tensorflow", "jax", "torch")
    replicas = devices = 1
    workers, worker = 1, 0
    clips_and_scales = True

    def __str__(self) -> str:
        others = f", worker {self.worker + 1} of {self.workers}" if self.workers > 1 else ""
        return f"{self.replicas} device{'s' if self.replicas > 1 else ''}{others}"

    @property
    def is_chief(self) -> bool:
        """Whether this worker is the one that writes the run's folder."""
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
        """Return the context in which model and optimizer are made, and their weights restored."""
        return contextlib.nullcontext()

    def share(self, batches: keras.utils.PyDataset) -> keras.utils.PyDataset:
        """Return this worker's rows of the batches, which all workers iterate over."""
        if self.replicas == 1:
            return batches
        return WorkerRows(batches, self.replicas, self.workers, self.worker)

    @contextlib.contextmanager
    def whole_folder(self, path: Path) -> Iterator[Path]:
        """Yield an empty folder to fill: the chief's becomes `path`, the others' are discarded.

        All workers fill one, because reading weights may need all of them.
        """
        with self.own_place(path) as path, whole_folder(path) as whole:
            yield whole

    @contextlib.contextmanager
    def own_place(self, path: Path) -> Iterator[Path]:
        """Give the chief `path` itself, the others one that is thrown away."""
        if self.is_chief:
            yield path
            return
        with TemporaryDirectory() as folder:
            yield Path(folder) / path.name

    def total(self, number: float) -> float:
        """Return the sum of all workers' numbers. Each worker waits here for all others."""
        return number

    def from_chief(self, number: float) -> float:
        """Return the chief's number, on every worker. Each worker waits here for all others."""
        return self.total(number if self.is_chief else 0.0)

    def wait(self):
        """Wait until all workers are here."""
        self.total(0.0)

    def together(self, function: Callable):
        """Call a function on all workers; if it fails on one, none continues. Each waits for all others.

        Raises:
            UserError, OSError: it failed on this worker.
            UserError: it failed on another worker.
        """
        failure = None
        try:
            function()
        except (UserError, OSError) as error:
            failure = error
        try:
            none_fails = self.total(float(failure is not None)) == 0
        except Exception:  # the others already know and have exited; each backend has its own error classes
            if failure is None:
                raise
            none_fails = False
        if not none_fails:
            raise failure or UserError("another worker cannot continue: see its output")

    def check_same(self, what: str, value: str, advice: str = "start all of them with the same command"):
        """Refuse to continue if a worker's value differs from the chief's. Each waits here for all others.

        Raises:
            UserError: this worker's value differs; the message says which value it is.
        """
        number = int(hashlib.sha256(value.encode()).hexdigest()[:6], 16)  # exact as a float32
        if self.from_chief(number) != number:
            raise UserError(f"worker {self.worker + 1} has {what} than worker 1: {advice}")

    def any_worker(self, flag: bool, step: int) -> bool:
        """Return whether any worker has the flag: the same answer on all workers, after the same step.

        Several workers ask each other only at every 16th step.
        """
        if self.workers == 1:
            return flag
        return step % 16 == 0 and self.total(float(flag)) > 0

    def same_logs(self) -> list[keras.callbacks.Callback]:
        """Return callbacks to place after those that measure, so that all workers decide alike."""
        return [ChiefsLogs(self)] if self.workers > 1 else []

    def _check_equal(self, own: int, devices: int):
        """Refuse workers with different numbers of devices."""
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
    clips_and_scales = False

    def __init__(self):
        import tensorflow as tf

        devices = tf.config.list_logical_devices("GPU") or tf.config.list_logical_devices("CPU")
        self._strategy = tf.distribute.MirroredStrategy([device.name for device in devices])
        self.replicas = self.devices = len(devices)

    def scope(self):
        return self._strategy.scope()


class MultiWorker(Strategy):
    """`tf.distribute.MultiWorkerMirroredStrategy`: a copy on each GPU of the machines in TF_CONFIG."""

    backends = ("tensorflow",)
    clips_and_scales = False

    def __init__(self):
        self.workers, self.worker = tf_cluster()
        import tensorflow as tf

        self._strategy = strategy = _own_batches()
        self.replicas = self.devices = strategy.num_replicas_in_sync
        self._check_equal(len(strategy.extended.worker_devices), self.replicas)
        self._sum = tf.function(
            lambda number: strategy.reduce("SUM", strategy.run(lambda x: x, (number,)), axis=None)
        )

    def scope(self):
        return self._strategy.scope()

    def total(self, number: float) -> float:
        import tensorflow as tf

        return float(self._sum(tf.constant(number, "float64"))) * self.workers / self.replicas

    def _lost_a_worker(self, error):
        import tensorflow as tf

        lost = (tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.DeadlineExceededError)
        return isinstance(error, lost)


def _own_batches():
    """Return a `MultiWorkerMirroredStrategy` for batches that are already this worker's own."""
    import tensorflow as tf

    class OwnBatches(tf.distribute.MultiWorkerMirroredStrategy):
        def experimental_distribute_dataset(self, dataset, options=None):
            """Split a batch among this worker's replicas; TensorFlow would split it among all workers'."""
            local = len(self.extended.worker_devices)

            def parts(*batch):
                split = tf.nest.map_structure(
                    lambda x: tf.reshape(x, tf.concat([[local, -1], tf.shape(x)[1:]], 0)), batch
                )
                return tf.data.Dataset.from_tensor_slices(split)

            dataset = dataset if local == 1 else dataset.flat_map(parts)
            return self.distribute_datasets_from_function(lambda context: dataset)

        def reduce(self, reduce_op, value, axis):
            """Also reduce values that Keras asks for but TensorFlow cannot reduce."""
            if tf.nest.is_nested(value):  # a batch: of its "mean", only the shapes are used
                return tf.nest.map_structure(lambda part: self.experimental_local_results(part)[0], value)
            if axis is not None and self.experimental_local_results(value)[0].shape.rank == 0:
                axis = None  # a scalar, which has no such axis
            return super().reduce(reduce_op, value, axis)

    return OwnBatches()


class DataParallel(Strategy):
    """`keras.distribution.DataParallel`: a copy on each device, of this machine or of all processes."""

    backends = ("jax",)

    def __init__(self):
        processes = keras_processes()
        with contextlib.ExitStack() as held:
            self._join(processes, held)
            self._distribution = self._distribute()
            self._held = held.pop_all()  # until the run ends
        self.replicas = self._distribution.num_model_replicas
        self.devices = max(self.replicas, self.devices)

    def _join(self, processes: tuple[int, int] | None, held: contextlib.ExitStack):
        """Join the processes that the environment names, if it names any."""
        if processes is not None:
            # The run's seed is set later; without one here, Keras would draw it across all processors.
            keras.utils.set_random_seed(0)
            held.enter_context(reworded_fatal_errors())
            keras.distribution.initialize()
            self.workers, self.worker = processes
            import jax

            self._check_equal(jax.local_device_count(), jax.device_count())

    def _distribute(self):
        return keras.distribution.DataParallel(auto_shard_dataset=False)

    def __enter__(self):
        self._before = keras.distribution.distribution()
        keras.distribution.set_distribution(self._distribution)
        return self

    def __exit__(self, *failure):
        self._held.close()
        keras.distribution.set_distribution(self._before)
        super().__exit__(*failure)

    def total(self, number: float) -> float:
        if self.workers == 1:
            return number
        import numpy as np
        from jax.experimental import multihost_utils

        return float(multihost_utils.process_allgather(np.float32(number)).sum())

    def _lost_a_worker(self, error):
        import jax

        # JAX has a single error class, whose message begins with what went wrong.
        signs = ("UNAVAILABLE", "ABORTED", "DEADLINE_EXCEEDED", "Gloo", "NCCL", "heartbeat")
        return isinstance(error, jax.errors.JaxRuntimeError) and any(sign in str(error) for sign in signs)


class ModelParallel(DataParallel):
    """`keras.distribution.ModelParallel`: every big weight split among this machine's devices."""

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


class ChiefsLogs(keras.callbacks.Callback):
    """Gives every worker the chief's logs of an epoch, which decide whether training stops."""

    def __init__(self, strategy: Strategy):
        super().__init__()
        self.strategy = strategy

    def on_epoch_end(self, epoch, logs=None):
        for name in sorted(logs):
            logs[name] = self.strategy.from_chief(float(logs[name]))


STRATEGIES = {
    "one": Strategy,
    "mirrored": Mirrored,
    "multi_worker": MultiWorker,
    "data_parallel": DataParallel,
    "model_parallel": ModelParallel,
}


def open_strategy(name: str | Strategy = "") -> Strategy:
    """Return a strategy, connected to its other workers if it has any.

    Call it before the backend has computed anything: TensorFlow and JAX can join other processes only then.

    Args:
        name: one of `STRATEGIES`; or a strategy, which is returned. Empty: all that is available: the
            processes that the environment names, else all GPUs if there are several, else one device.

    Raises:
        UserError: an unknown name, one that the backend lacks, or an environment that does not fit, such as
            one that names processes for another backend.
    """
    if isinstance(name, Strategy):
        return name
    backend = keras.backend.backend()
    if not name:
        check_named_for(backend)
    try:
        name = name or _what_there_is(backend)
    except Exception as error:  # each backend has its own error classes
        raise UserError(f"{backend} finds no device ({_first_line(error)})") from None
    if name not in STRATEGIES:
        raise UserError(f"there is no strategy {name!r}; {nearest(name, list(STRATEGIES))}")
    kind = STRATEGIES[name]
    if backend not in kind.backends:
        able = [other for other, strategy in STRATEGIES.items() if backend in strategy.backends]
        raise UserError(
            f"strategy {name} needs the backend {' or '.join(kind.backends)} (KERAS_BACKEND): "
            f"{backend} has {', '.join(able)}"
        )
    try:
        opened = kind()
    except UserError:
        raise
    except Exception as error:  # each backend has its own error classes
        raise UserError(
            f"strategy {name} cannot start ({_first_line(error)}): "
            "are all workers running, at the addresses given?"
        ) from None
    print(f"strategy {name}: {opened}")
    return opened


def _first_line(error: Exception) -> str:
    return f"{(str(error).strip() or type(error).__name__).splitlines()[0]:.160}"


def _what_there_is(backend: str) -> str:
    """Return the strategy that uses everything available to the backend."""
    everything = {"tensorflow": ("multi_worker", (TF_CONFIG,)), "jax": ("data_parallel", KERAS_PROCESSES)}
    if backend not in everything:
        return "one"
    together, variables = everything[backend]
    if any(os.environ.get(variable) for variable in variables):
        return together
    devices = [name for name in keras.distribution.list_devices() if not name.startswith("cpu")]
    if len(devices) < 2:
        return "one"
    return "mirrored" if backend == "tensorflow" else "data_parallel"
