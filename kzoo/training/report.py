"""A run's history, TensorBoard's log, and the table of its speed."""

import csv
import importlib.util
import re
import sys
import time
from collections import Counter
from pathlib import Path

import keras

from kzoo.data.wrapped_batches import CountedBatches
from kzoo.files import atomic_write
from kzoo.training.checkpoints import Checkpoints

HISTORY = "history.csv"  # in a run's folder
# Below both, a model has hardly learned. BLEU alone is 0 for right translations of fewer than four tokens.
HARDLY_BLEU, HARDLY_CHRF2 = 2.0, 25.0


class History(keras.callbacks.Callback):
    """Writes the history as CSV after each epoch, and stops training when patience runs out.

    Args:
        path: the file.
        checkpoints: callback with the history; place it before this callback.
        patience: int. Stop after this many epochs without a better validation score; 0: never.
    """

    def __init__(self, path: Path, checkpoints: Checkpoints, patience: int):
        super().__init__()
        self.path, self.checkpoints, self.patience = path, checkpoints, patience

    @property
    def out_of_patience(self) -> bool:
        """Whether the validation score has not improved for `patience` epochs."""
        return bool(self.checkpoints.impatient_epoch(self.patience))

    def on_epoch_end(self, epoch, logs=None):
        write_history(self.path, self.checkpoints)
        if self.out_of_patience:
            self.model.stop_training = True


def write_history(path: Path, checkpoints: Checkpoints):
    """Write the history as CSV, on the chief only."""
    if not checkpoints.strategy.is_chief:
        return
    names = dict.fromkeys(name for row in checkpoints.history for name in row)
    with atomic_write(path) as whole, open(whole, "w", newline="") as file:
        writer = csv.DictWriter(file, fieldnames=list(names))
        writer.writeheader()
        writer.writerows(checkpoints.history)


class Curves(keras.callbacks.Callback):
    """Writes the logs of each epoch for TensorBoard; without that package, only a line that says so."""

    def __init__(self, folder: Path):
        super().__init__()
        self.folder, self._writer = folder, None

    def on_train_begin(self, logs=None):
        if importlib.util.find_spec("tensorboard") is None:
            print("tensorboard: not installed; this run has no TensorBoard log, only history.csv")
            return
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(self.folder))

    def on_epoch_end(self, epoch, logs=None):
        if self._writer:
            from tensorboard.compat.proto.event_pb2 import Event
            from tensorboard.compat.proto.summary_pb2 import Summary

            values = [Summary.Value(tag=name, simple_value=value) for name, value in logs.items()]
            self._writer.add_event(Event(wall_time=time.time(), step=epoch, summary=Summary(value=values)))
            self._writer.flush()

    def on_train_end(self, logs=None):
        if self._writer:
            self._writer.close()


class RunReport(keras.callbacks.Callback):
    """Logs each epoch's speed, and reports the run's speed at its end.

    It logs an epoch's seconds, target tokens per second, and the share of its time spent making batches.
    Place it before the callbacks that read these logs or log other times.

    Args:
        batches: the training batches, of all workers.
        checkpoints: callback with an epoch's time, summed over restarts.
        began: `time.perf_counter()` at the start of the run.
    """

    def __init__(self, batches: CountedBatches, checkpoints: Checkpoints, began: float):
        super().__init__()
        self.counted, self.checkpoints = batches, checkpoints
        self.batches, self.counts = batches.batches, batches.counts
        self.epochs = []
        self.began, self._training, self._first_step, self._steps = began, None, None, 0
        self._earlier = 0.0  # seconds before a restart, when batches were not counted
        self._peak = 0

    def on_train_begin(self, logs=None):
        if self._training is None:
            self._training = time.perf_counter()
            self.counts.clear()  # of batches that were made to compile the step for their shapes

    def on_epoch_begin(self, epoch, logs=None):
        self._before, self._made = self.checkpoints.seconds, self.counts["seconds"]
        self._earlier += self._before

    def on_train_batch_end(self, batch, logs=None):
        self._steps += 1
        if self._first_step is None:
            self._first_step = time.perf_counter() - self._training

    def on_epoch_end(self, epoch, logs=None):
        seconds = self.checkpoints.seconds
        tokens = self.batches.num_tokens * self.checkpoints.batch / len(self.batches)
        here = seconds - self._before  # 0 if the epoch only had to be scored
        share = (self.counts["seconds"] - self._made) / here if here else 0.0
        logs |= {"seconds": seconds, "tokens_per_second": tokens / seconds, "input_share": share}
        self.epochs.append(logs)  # no copy: later callbacks add to it

    def on_train_end(self, logs=None):
        self._peak = peak_memory()  # before the report and a copy of the model take memory

    def rows(self) -> list[tuple[str, str]]:
        """Return the measurements as names and values; none if no epoch was trained."""
        if not self.epochs or not self.counts["batches"]:
            return []
        counts, now = self.counts, time.perf_counter()
        whole, before = now - self.began, self._training - self.began
        # Batches are prefetched, so a short run does not train on all that were counted.
        trained = self._steps / counts["batches"]
        training = sum(epoch["seconds"] for epoch in self.epochs) - self._earlier
        validation = sum(epoch.get("val_seconds", 0.0) for epoch in self.epochs)
        rest = max(0.0, whole - before - training - validation)
        padding = 1 - (counts["source_tokens"] + counts["target_tokens"]) / counts["places"]
        return [
            ("target tokens per second", f"{trained * counts['target_tokens'] / training:,.0f}"),
            ("padding among the tokens", f"{padding:.1%}"),
            ("making batches, of training", f"{counts['seconds'] / training:.1%}"),
            ("peak memory", f"{self._peak / 2**20:,.0f} MiB"),
            ("time", f"{whole:,.0f} s"),
            ("  before training", f"{before:,.0f} s"),
            ("  training", f"{training:,.0f} s"),
            ("  validation", f"{validation:,.0f} s"),
            ("  checkpoints and everything else", f"{rest:,.0f} s"),
            ("first step finished after", f"{self._first_step:,.0f} s"),
        ]


def doubts(history: list[dict], places: Counter) -> list[str]:
    """Return a line for each sign that a run could not learn well, with the key to change.

    Args:
        history: `Checkpoints.history`.
        places: `CountedBatches.counts`.
    """
    found = []
    tokens = places["source_tokens"] + places["target_tokens"]
    if tokens < places["places"] / 2:
        padding = 1 - tokens / places["places"]
        found.append(f"{padding:.0%} of the batches is padding: raise num_shapes or tokens")
    scored = [row for row in history if "val_chrf2" in row]  # not all epochs are scored
    best = max(scored, key=lambda row: row["val_chrf2"], default=None)
    if best and best["val_bleu"] < HARDLY_BLEU and best["val_chrf2"] < HARDLY_CHRF2:
        improving = best["val_chrf2"] == scored[-1]["val_chrf2"]
        key = (
            "train longer, by epochs or minutes"
            if improving
            else "lower warmup_steps, tokens or vocabulary_size, or raise rate"
        )
        found.append(
            f"the model has hardly learned (validation: BLEU {best['val_bleu']:.1f}, chrF2 "
            f"{best['val_chrf2']:.1f}): {key}; check that line 7 of one file translates line 7 of the other"
        )
    return found


def print_report(report: RunReport):
    """Print a run's report as a table, and what is doubtful about the run."""
    from rich.console import Console
    from rich.table import Column, Table

    table = Table("", Column(justify="right"), show_header=False)
    for row in report.rows():
        table.add_row(*row)
    if table.row_count:
        Console().print(table)
        for line in doubts(report.checkpoints.history, report.counts):
            print(line)


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
    # Linux's `ru_maxrss` includes the peak of the process that started this one.
    found = re.search(r"^VmHWM:\s+(\d+) kB$", status.read_text(), re.M) if status.is_file() else None
    if found:
        return int(found[1]) * 1024
    if sys.platform == "win32":
        return 0
    import resource

    used = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return used if sys.platform == "darwin" else used * 1024
