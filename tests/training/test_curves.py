"""The log for TensorBoard: written where its packages are installed, else left out with a line."""

import importlib.util

from kzoo.training.report import curves


def test_without_tensorboard_there_is_no_log_and_a_line_says_so(tmp_path, monkeypatch, capsys):
    find = importlib.util.find_spec
    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "tensorboard" else find(name)
    )
    assert curves(tmp_path) == []
    assert capsys.readouterr().out.startswith("tensorboard: not installed; this run has no TensorBoard log")
