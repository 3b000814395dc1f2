"""The recipes of a bundle in turn, on the target; a small script stands for training."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from kzoo.bundle import target
from kzoo.errors import UserError

SCRIPT = """
import signal, sys, threading, time
from pathlib import Path
from kzoo.bundle.target import end_with_parent
threading.Thread(target=end_with_parent, daemon=True).start()
name, folder, *overrides = sys.argv[1:]
print("training", name, overrides, Path.cwd().name)
if name == "bad":
    sys.exit("error: no such thing")
if name == "unfinished":
    sys.exit(0)
if name == "long":
    received = []
    def receive(number, frame):
        received.append(signal.Signals(number).name)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, receive)
    Path(folder, "begun").touch()
    end = time.monotonic() + 60
    while not received and time.monotonic() < end:
        time.sleep(0.05)
    time.sleep(0.2)  # for a second signal
    Path(folder, "saved").write_text(" ".join(received))
    sys.exit(0)
Path(folder, "timing.json").write_text("{}")
"""


@pytest.fixture
def bundled(tmp_path, monkeypatch):
    """Make a bundle of recipes of these names, and go to an empty folder."""
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    monkeypatch.setattr(target, "WORKER", [sys.executable, str(script)])
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # pytest keeps its own
    (tmp_path / "there").mkdir()
    monkeypatch.chdir(tmp_path / "there")
    monkeypatch.delenv("OUT", raising=False)

    def make(*names):
        folder = tmp_path / "bundle"
        folder.mkdir()
        (folder / "bundle.json").write_text(json.dumps({"recipes": [{"name": name} for name in names]}))
        return str(folder)

    return make


def test_one_that_fails_does_not_keep_the_others(bundled, tmp_path, capfdbinary):
    with pytest.raises(SystemExit) as stop:
        target.main(bundled("bad", "good", "unfinished"), "epochs=1")
    assert str(stop.value).startswith("error: 2 of 3 recipes failed: bad (exit status 1; ")
    assert "unfinished (exit status 0" in str(stop.value)
    results = tmp_path / "there" / "results"
    assert (results / "bad.log").read_text() == "training bad ['epochs=1'] bundle\nerror: no such thing\n"
    assert (results / "good.timing.json").exists()
    assert b"training good ['epochs=1'] bundle\n" in capfdbinary.readouterr().out


def test_results_go_where_out_says(bundled, tmp_path, monkeypatch):
    monkeypatch.setenv("OUT", "elsewhere")
    target.main(bundled("good"))
    assert (tmp_path / "there" / "elsewhere" / "good.timing.json").exists()
    assert (tmp_path / "there" / "runs" / "good" / "timing.json").exists()


def test_a_folder_for_results_that_cannot_be_is_said_first(bundled, tmp_path, monkeypatch):
    (tmp_path / "there" / "file").touch()
    monkeypatch.setenv("OUT", "file")
    with pytest.raises(UserError, match="file/SHA256SUMS: cannot be written"):
        target.main(bundled("good"))
    assert not (tmp_path / "there" / "runs").exists()


def test_results_that_cannot_be_written_do_not_keep_the_other_recipes(bundled, tmp_path, monkeypatch):
    def collect(name, run, results):
        if name == "good":
            raise OSError("the disk is full")

    monkeypatch.setattr(target, "collect", collect)
    with pytest.raises(SystemExit, match=r"1 of 2 recipes failed: good \(trained, .*the disk is full"):
        target.main(bundled("good", "better"))
    assert (tmp_path / "there" / "runs" / "better" / "timing.json").exists()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGTERM, 0), (signal.SIGHUP, 0), (signal.SIGINT, 130)]
)
def test_a_signal_ends_the_run_in_hand_and_starts_no_other(number, status, bundled, tmp_path):
    """Sent to all processes of the terminal, as Ctrl-C is; the run in hand receives one signal."""
    process = begun(bundled("long", "good"), tmp_path)
    os.killpg(process.pid, number)
    output, _ = process.communicate(timeout=30)
    assert process.returncode == status
    assert "stopped in long; run the same command to resume" in output
    runs = tmp_path / "there" / "runs"
    assert (runs / "long" / "saved").read_text() == "SIGTERM"
    assert not (runs / "good").exists()


def test_a_killed_one_takes_the_run_in_hand_with_it(bundled, tmp_path):
    process = begun(bundled("long"), tmp_path)
    process.kill()
    process.communicate(timeout=30)
    deadline = time.monotonic() + 30
    while not (tmp_path / "there" / "runs" / "long" / "saved").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def begun(bundle, tmp_path):
    """Return the process of `run.sh`, with its first recipe in training."""
    program = (
        "import signal\n"
        "signal.signal(signal.SIGHUP, signal.SIG_DFL)\n"  # which nohup has the tests ignore
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"  # likewise a shell, with &
        "from kzoo.bundle import target\n"
        f"target.WORKER = {target.WORKER}\n"
        f"target.main({bundle!r})"
    )
    command = [sys.executable, "-c", program]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, process_group=0)
    deadline = time.monotonic() + 30
    while not (tmp_path / "there" / "runs" / "long" / "begun").exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return process
