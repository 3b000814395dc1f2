"""`run.sh` of a bundle: runs each recipe in its own process, and collects the results in one folder."""

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from kzoo.bundle.results import collect
from kzoo.errors import UserError, exits_on_errors
from kzoo.files import check_writable
from kzoo.training.checkpoints import SUMS

DONE = "timing.json"  # the last file that a finished run gets
WORKER = [sys.executable, "-m", "kzoo.bundle.one"]


def main(bundle: str, *overrides: str):
    """Train and score a bundle's recipes in turn; one that fails does not stop the others.

    SIGTERM, SIGHUP and Ctrl-C let the current run save and end; nothing is started after it.

    Args:
        bundle: its folder.
        *overrides: each `KEY=VALUE`, for every recipe.

    Raises:
        SystemExit: some recipes failed, named in one line; or it was interrupted.
    """
    runs, results = Path("runs").resolve(), Path(os.environ.get("OUT") or "results").resolve()
    check_writable(results / SUMS)  # before the first trains for hours
    names = [one["name"] for one in json.loads(Path(bundle, "bundle.json").read_text("utf-8"))["recipes"]]
    os.chdir(bundle)  # the paths in its recipes are relative to it
    stop = Stop()
    failed = []
    for name in names:
        print(f"== {name}", flush=True)
        status = _run(name, runs, overrides, stop)
        error = _collected(name, runs, results)
        if stop.signal:
            print(f"stopped in {name}; run the same command to resume")
            sys.exit(130 if stop.signal == signal.SIGINT else 0)
        if status or not (runs / name / DONE).exists():
            failed.append(f"{name} (exit status {status}; {results / name}.log)")
        elif error:
            failed.append(f"{name} (trained, in {runs / name}; {error})")
    if failed:
        sys.exit(f"error: {len(failed)} of {len(names)} recipes failed: {', '.join(failed)}")
    print(f"done: {results}")


def _collected(name: str, runs: Path, results: Path) -> str | None:
    """Collect a recipe's results; return the reason if that fails, so that the other recipes still run."""
    try:
        collect(name, runs / name, results)
    except (UserError, OSError) as error:
        return str(error)


class Stop:
    """Tells the current run to save and end when this process is told to."""

    def __init__(self):
        self.signal, self.process = None, None
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) != signal.SIG_IGN:  # as by nohup
                signal.signal(number, self._receive)

    def _receive(self, number, frame):
        self.signal = number
        if self.process:
            self.process.terminate()


def end_with_parent():
    """In the process of a recipe: be told to save and end when `run.sh`, which holds the pipe, is killed."""
    os.read(sys.stdin.fileno(), 1)  # sys.stdin.read would hold a lock that Python cannot end with
    os.kill(os.getpid(), signal.SIGTERM)


def _run(name: str, runs: Path, overrides: tuple[str, ...], stop: Stop) -> int:
    """Train and score a recipe; show what it prints and add it to its log; return its exit status."""
    folder = runs / name
    folder.mkdir(parents=True, exist_ok=True)
    command = [*WORKER, name, str(folder), *overrides]
    environment = {
        # Compiling the shapes of a large model's batches takes minutes: do it once, also for a resumed run.
        "JAX_COMPILATION_CACHE_DIR": str(runs / ".compiled"),
        **os.environ,
        "PYTHONUNBUFFERED": "1",
    }
    # In its own session, so that Ctrl-C reaches it only once, from here.
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    with (
        subprocess.Popen(command, env=environment, start_new_session=True, **pipes) as stop.process,
        open(folder / "log", "ab", buffering=0) as log,
    ):
        if stop.signal:  # before there was a process to tell
            stop.process.terminate()
        for line in stop.process.stdout:
            with contextlib.suppress(OSError):  # a full disk, of which the training tells
                log.write(line)
            sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()
    return stop.process.returncode


if __name__ == "__main__":
    with exits_on_errors():
        main(*sys.argv[1:])
