"""A run's report: words, padding and times against counting by hand."""

import itertools
import json
import re
import time
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import keras
import pytest

from kzoo.data import Batches
from kzoo.data.wrapped_batches import CountedBatches
from kzoo.training.checkpoints import Checkpoints
from kzoo.training.report import RunReport, doubts, peak_memory


def begun(counts, checkpoints, began=0.0):
    """Return the report of a run that begins now, and has then made such batches, three an epoch."""
    batches = CountedBatches(Batches([[5]] * 6, [[6] * 4] * 6, tokens=10, num_shapes=1))
    report = RunReport(batches, checkpoints, began)
    batches[0]  # to compile its shape
    report.on_train_begin()
    report.counts.update(counts)
    return report


def test_batches_are_counted():
    source = [[5] * n for n in (3, 1, 4, 1, 5)]
    target = [[6] * n for n in (2, 7, 1, 8, 2)]
    batches = CountedBatches(Batches(source, target, tokens=27, num_shapes=2))
    counts = batches.counts
    made = [batches[i] for i in range(len(batches))]
    assert counts["batches"] == len(batches) == len(made)
    assert counts["source_tokens"] == 14 + 5  # with the end symbols
    assert counts["target_tokens"] == batches.batches.num_tokens == 20 + 5
    assert counts["places"] == sum(inputs["source"].size + labels.size for inputs, labels, _ in made)
    batches.start_epoch(3)
    assert batches.batches.epoch == 3


def test_a_short_run_reports_what_it_trained_not_what_was_made_ahead():
    counts = Counter(batches=15, source_tokens=150, target_tokens=300, places=600, seconds=1.0)
    checkpoints = SimpleNamespace(seconds=0.0, batch=3)
    report = begun(counts, checkpoints, time.perf_counter())
    report.on_epoch_begin(0)
    for batch in range(10):
        report.on_train_batch_end(batch)
    checkpoints.seconds = 4.0
    report.on_epoch_end(0, {})
    rows = dict(report.rows())
    assert rows["target tokens per second"] == "50"
    assert rows["padding among the tokens"] == "25.0%"
    assert rows["making batches, of training"] == "25.0%"


def test_a_report_is_of_this_start_alone():
    """Of a start 100 seconds ago; 6 of the epoch's 10 seconds were of an earlier one, with other batches."""
    counts = Counter(batches=1, source_tokens=5, target_tokens=8, places=16)
    checkpoints, logs = SimpleNamespace(seconds=6.0, batch=3), {}
    report = begun(counts, checkpoints, time.perf_counter() - 100)
    report.on_epoch_begin(3)
    report.on_train_batch_end(0)
    checkpoints.seconds = 10.0
    report.on_epoch_end(3, logs)
    logs["val_seconds"] = 7.0  # of a later callback
    rows = {name.strip(): value for name, value in report.rows()}
    assert rows["target tokens per second"] == "2"
    assert (rows["before training"], rows["training"], rows["validation"]) == ("100 s", "4 s", "7 s")


def test_the_peak_memory_of_a_process_is_what_linux_counts(monkeypatch):
    monkeypatch.setattr(keras.backend, "backend", lambda: "torch")  # as without an accelerator
    counted = lambda: 1024 * int(re.search(r"VmHWM:\s+(\d+)", Path("/proc/self/status").read_text())[1])  # noqa: E731
    before = counted()
    assert before <= peak_memory() <= counted()


def test_speed_counts_this_start_s_batches_in_this_start_s_time():
    """Of an epoch that goes on, 12 seconds in: 8 more, of which making batches took 2."""
    checkpoints = SimpleNamespace(seconds=12.0, batch=2)
    report = begun(Counter(seconds=7.0), checkpoints)
    assert (len(report.batches), report.batches.num_tokens) == (3, 30)
    report.on_epoch_begin(1)
    checkpoints.seconds, report.counts["seconds"] = 20.0, 9.0
    logs = {}
    report.on_epoch_end(1, logs)
    assert logs == {"seconds": 20.0, "tokens_per_second": 1.0, "input_share": 0.25}


class Slow(Checkpoints):
    """Checkpoints of which each takes 0.2 seconds to write; `written` has when it began, and the state."""

    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self.written = []
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        self.set_model(model)

    def _write(self, name, state):
        self.written.append((time.perf_counter(), json.loads(state)))
        time.sleep(0.2)

    def train(self, steps: int, seconds: float):
        self.set_params({"steps": steps})
        self.on_epoch_begin(0)
        for batch in range(steps):
            time.sleep(seconds)
            self.on_train_batch_end(batch, {"loss": 1.0})


def test_an_epoch_s_time_is_that_of_its_steps_alone(tmp_path):
    """Without writing checkpoints, here after the first step and the last, and without scoring."""
    checkpoints, began = Slow(tmp_path, minutes=1e-9), time.perf_counter()
    checkpoints.train(steps=3, seconds=0.01)
    assert 3 * 0.01 <= checkpoints.seconds <= time.perf_counter() - began - 2 * 0.2
    checkpoints = Slow(tmp_path, minutes=0)
    checkpoints.train(steps=3, seconds=0.01)
    steps = checkpoints.seconds
    time.sleep(0.05)
    checkpoints.save()  # as after SIGTERM while the epoch was scored
    ((_, state),) = checkpoints.written
    assert state["seconds"] == steps


def test_a_checkpoint_is_due_so_many_minutes_after_the_last(tmp_path):
    """Of an epoch that goes on, 30 seconds in, which do not count."""
    checkpoints, began = Slow(tmp_path, minutes=0.1 / 60), time.perf_counter()
    checkpoints.seconds = 30.0
    checkpoints.train(steps=12, seconds=0.03)
    times = [began, *(start for start, _ in checkpoints.written)]
    assert len(times) > 2
    assert times[1] - times[0] >= 0.1
    assert all(later - one >= 0.1 + 0.2 for one, later in itertools.pairwise(times[1:]))
    assert checkpoints.seconds >= 30 + 12 * 0.03
    never = Slow(tmp_path, minutes=0)
    never.train(steps=3, seconds=0.01)
    assert never.written == []


@pytest.mark.parametrize(
    ("rows", "named"),
    [
        ([(1.0, 12.0), (1.5, 15.0)], "epochs"),  # still improving
        ([(1.5, 15.0), (1.0, 12.0)], "warmup_steps"),
        ([(0.0, 90.0)], ""),  # right translations of fewer than four tokens
        ([(30.0, 50.0)], ""),
        ([(30.0, None)], ""),  # of a run before chrF2
    ],
)
def test_a_run_that_could_not_learn_names_the_key(rows, named):
    history = [{"val_bleu": bleu} | ({} if chrf2 is None else {"val_chrf2": chrf2}) for bleu, chrf2 in rows]
    found = doubts(history, Counter(source_tokens=40, target_tokens=40, places=100))
    assert len(found) == bool(named) and named in "".join(found)


def test_more_padding_than_text_names_the_key():
    (found,) = doubts([], Counter(source_tokens=20, target_tokens=20, places=100))
    assert "60%" in found and "num_shapes" in found
