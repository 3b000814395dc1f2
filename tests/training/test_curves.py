"""The log for TensorBoard: written where the package is installed, else left out with a line."""

import importlib.util

import pytest

from kzoo.training.report import Curves

LOGS = [{"loss": 2.5, "val_bleu": 1.0}, {"loss": 1.25, "val_bleu": 20.0}]


def write(folder):
    curves = Curves(folder)
    curves.on_train_begin()
    for epoch, logs in enumerate(LOGS):
        curves.on_epoch_end(epoch, logs)
    curves.on_train_end()


def test_tensorboard_reads_each_epochs_logs(tmp_path):
    accumulator = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    write(tmp_path)
    found = accumulator.EventAccumulator(str(tmp_path)).Reload()
    for name in LOGS[0]:
        expected = [(epoch, logs[name]) for epoch, logs in enumerate(LOGS)]
        assert [(event.step, event.value) for event in found.Scalars(name)] == expected


def test_without_tensorboard_there_is_no_log_and_a_line_says_so(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tensorboard" else find(name)
    )
    write(tmp_path)
    assert not list(tmp_path.iterdir())
    assert capsys.readouterr().out.startswith("tensorboard: not installed; this run has no TensorBoard log")
