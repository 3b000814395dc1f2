"""What commands do with the terminal: start Keras quietly, show progress, say where they were stopped."""

import contextlib
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator

from kzoo.errors import UserError


def start_backend():
    """Import Keras and start its backend, without the messages that TensorFlow has no setting to silence."""
    import_keras()
    start_devices()


def import_keras():
    """Import Keras and keras-hub; the backend can still join those of other processes."""
    import logging

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    with _started():
        import keras  # noqa: F401
        import keras_hub  # noqa: F401, which imports TensorFlow beside every backend


def start_devices():
    """Let the backend find its devices."""
    import keras

    with _started():
        keras.ops.zeros(())


@contextlib.contextmanager
def _started() -> Iterator[None]:
    """Discard what the block writes to standard error; raise its errors as one line."""
    sys.stderr.flush()
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        yield
    except (ImportError, ValueError, RuntimeError, AssertionError) as error:
        # The line that says why: TensorFlow's message begins with a traceback, which this line ends.
        lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
        reason = ([line for line in lines if re.match(r"\w+Error: ", line)] or lines[:1])[-1]
        backend = os.environ.get("KERAS_BACKEND", "tensorflow")
        raise UserError(f"Keras cannot start its backend {backend!r} (KERAS_BACKEND): {reason}") from None
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)


@contextlib.contextmanager
def progress_bar(what: str, total: int | None, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show a bar on standard error if that is a terminal; yield the function that advances it by a count."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    # Elsewhere it would write an empty line.
    with Progress(console=console, disable=not (shown and console.is_terminal), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda count: bar.advance(task, count)


@contextlib.contextmanager
def status_line(what: str) -> Iterator[Callable[[str], None]]:
    """Say on standard error what is done; on a terminal, yield the function that replaces the line."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        print(what, file=sys.stderr)
        yield lambda line: None
        return
    with console.status(what) as status:
        yield status.update


@contextlib.contextmanager
def telling_when_stopped(line: Callable[[], str]) -> Iterator[None]:
    """At SIGTERM or Ctrl-C, end the process with a line on standard error, and the shell's exit status."""

    def stop(number, frame):
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    earlier = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except SystemExit:
        print(f"\n{line()}", file=sys.stderr)
        raise
    finally:
        for number, action in earlier.items():
            signal.signal(number, action)
