"""The table at the end of `kzoo train`: how fast it was, and where the time went."""

import re
import resource
import sys
import time
from pathlib import Path

import keras

from kzoo.training.accounting import Account
from kzoo.training.arithmetic import measured_peak, training_flops
from kzoo.training.checkpoints import Checkpoints


class RunReport(keras.callbacks.Callback):
    """Measures a training and reports its speed at the end; place it after the callbacks that log times.

    Args:
        account: of the batches trained on.
        checkpoints: they keep the time of an epoch over several starts of a run.
        began: time of `time.perf_counter` at which the run was started.
        devices: int. Number of devices that train together.
    """

    def __init__(self, account: Account, checkpoints: Checkpoints, began: float, devices: int = 1):
        super().__init__()
        self.account, self.checkpoints, self.devices = account, checkpoints, devices
        self._earlier = 0.0
        self.epochs: list[dict] = []
        self._began, self._training, self._first_step, self._steps = began, None, None, 0
        self._peak = 0

    def on_train_begin(self, logs=None):
        self._training = self._training or time.perf_counter()

    def on_epoch_begin(self, epoch, logs=None):
        self._earlier += self.checkpoints.seconds  # of earlier starts, which the account has not seen

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1
        if self._first_step is None:
            self._first_step = time.perf_counter() - self._training

    def on_epoch_end(self, epoch, logs=None):
        self.epochs.append(dict(logs))

    def on_train_end(self, logs=None):
        self._peak = peak_memory()  # before what the report itself holds, and a copy of the model

    def rows(self) -> list[tuple[str, str]]:
        """Return the measurements as pairs of name and value; none if no epoch was trained."""
        if not self.epochs or not self.account.batches:
            return []
        account, now = self.account, time.perf_counter()
        whole, before = now - self._began, self._training - self._began
        # Batches are made ahead: a short run does not train on all that were counted.
        trained = self._steps / account.batches
        training, validation = (
            sum(epoch.get(name, 0.0) for epoch in self.epochs) for name in ("seconds", "val_seconds")
        )
        training -= self._earlier
        needed = trained * training_flops(
            self.model.backbone,
            account.sentences,
            account.source_words,
            account.target_words,
            account.squares,
            account.source_types,
        )
        precision = self.model.dtype_policy.compute_dtype
        peak = self.devices * measured_peak(precision)
        return [
            ("target tokens per second", f"{trained * account.target_words / training:,.0f}"),
            ("arithmetic needed for them", f"{needed / training / 1e9:,.1f} GFLOP/s"),
            ("  share of a matrix product", f"{needed / training / peak:.1%}"),
            (f"    which reaches, in {precision}", f"{peak / 1e9:,.0f} GFLOP/s"),
            ("padding among the tokens", f"{account.padding:.1%}"),
            ("making batches, of training", f"{account.seconds / training:.1%}"),
            ("peak memory", f"{self._peak / 2**20:,.0f} MiB"),
            ("time", f"{whole:,.0f} s"),
            ("  before training", f"{before:,.0f} s"),
            ("  training", f"{training:,.0f} s"),
            ("  validation", f"{validation:,.0f} s"),
            (
                "  checkpoints and everything else",
                f"{max(0.0, whole - before - training - validation):,.0f} s",
            ),
            ("first step finished after", f"{self._first_step:,.0f} s"),
        ]


def print_report(report: RunReport):
    """Print a run's report as a table."""
    from rich.console import Console
    from rich.table import Table

    table = Table(show_header=False)
    table.add_column(justify="left")
    table.add_column(justify="right")
    for row in report.rows():
        table.add_row(*row)
    if table.row_count:
        Console().print(table)


def peak_memory() -> int:
    """Return the peak memory in bytes: on the accelerator if there is one, else the process's main memory."""
    if keras.backend.backend() == "tensorflow":
        import tensorflow as tf

        if tf.config.list_logical_devices("GPU"):
            return tf.config.experimental.get_memory_info("GPU:0")["peak"]
    if keras.backend.backend() == "jax":
        import jax

        statistics = jax.local_devices()[0].memory_stats()
        if statistics:
            return statistics["peak_bytes_in_use"]
    status = Path("/proc/self/status")
    # On Linux the other count begins with what the process that started this one held.
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.M) if status.is_file() else None
    kilobytes = int(found[1]) if found else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return kilobytes if sys.platform == "darwin" else kilobytes * 1024
