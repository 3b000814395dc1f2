"""Training on one device, and what several processes that train together do and agree on."""

import contextlib
import hashlib
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import keras

from kzoo.data.batch_wrappers import WorkerRows
from kzoo.errors import UserError, WorkerError, one_line
from kzoo.files import whole_folder
from kzoo.training.fatal_errors import LOST_A_WORKER


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


class ChiefsLogs(keras.callbacks.Callback):
    """Gives every worker the chief's logs of an epoch, which decide whether training stops."""

    def __init__(self, strategy: Strategy):
        super().__init__()
        self.strategy = strategy

    def on_epoch_end(self, epoch, logs=None):
        for name in sorted(logs):
            logs[name] = self.strategy.from_chief(float(logs[name]))
