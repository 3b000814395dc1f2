"""SIGTERM where a run has nothing to save: before its first step, or after its last."""

import contextlib
import signal
import threading
from collections.abc import Iterator


class Told(BaseException):
    """The process is told to stop: raised through whatever runs, to be handled where that has ended."""


@contextlib.contextmanager
def nothing_to_save(workers: int = 1) -> Iterator[None]:
    """Let SIGTERM end the block at once, with exit status 0.

    One of several workers just ends, as without this: the others are ended by that.
    """

    def stop(number, frame):
        raise Told

    if workers > 1 or threading.current_thread() is not threading.main_thread():
        yield  # no other thread may set what signals do
        return
    earlier = signal.signal(signal.SIGTERM, stop)
    try:
        yield
    except Told:
        print("\nSIGTERM: stopped where there is nothing to save; the same command goes on")
        raise SystemExit(0) from None
    finally:
        signal.signal(signal.SIGTERM, earlier)
