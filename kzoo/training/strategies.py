"""Where a run trains: on one device, on all devices of a machine, or on several machines.

`train` opens one of `STRATEGIES` by name and from then on uses the object.
"""

import contextlib

import keras

from kzoo.errors import UserError, first_line, nearest
from kzoo.training.clusters import (
    KERAS_PROCESSES,
    check_named_for,
    keras_processes,
    names_processes,
    tf_cluster,
)
from kzoo.training.fatal_errors import reworded_fatal_errors
from kzoo.training.layouts import model_parallel
from kzoo.training.strategy import Strategy


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


STRATEGIES = {
    "one": Strategy,
    "mirrored": Mirrored,
    "multi_worker": MultiWorker,
    "data_parallel": DataParallel,
    "model_parallel": ModelParallel,
}
# What each backend uses unless told otherwise: of several processes, of several devices in one process.
SEVERAL = {"tensorflow": ("multi_worker", "mirrored"), "jax": ("data_parallel", "data_parallel")}


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
        name = _what_there_is(backend)
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
            f"strategy {name} cannot start ({first_line(error):.160}): "
            "are all workers running, at the addresses given?"
        ) from None
    print(f"strategy {name}: {opened}")
    return opened


def _what_there_is(backend: str) -> str:
    """Return the strategy that uses everything available to the backend."""
    if backend not in SEVERAL:
        return "one"
    processes, devices = SEVERAL[backend]
    if names_processes(backend):
        return processes
    try:
        found = keras.distribution.list_devices()
    except Exception as error:  # each backend has its own error classes
        raise UserError(f"{backend} finds no device ({first_line(error):.160})") from None
    return devices if sum(not name.startswith("cpu") for name in found) > 1 else "one"
