"""SIGTERM while a run has nothing to save: before its first step, or after its last."""

import contextlib
import signal
import threading
from collections.abc import Iterator

AGAIN = 5.0  # seconds


class Told(BaseException):
    """The process was told to stop: raised out of the running code, and handled by the code around it."""


@contextlib.contextmanager
def nothing_to_save(workers: int = 1) -> Iterator[None]:
    """Let SIGTERM end the block at once, with exit status 0.

    One of several workers just ends, as it would without this, which also ends the others.
    """

    def stop(number, frame):
        # Raised within a callback of C, such as the garbage collector's, it would be lost.
        signal.setitimer(signal.ITIMER_REAL, AGAIN)
        raise Told

    def again(number, frame):
        signal.raise_signal(signal.SIGTERM)

    if workers > 1 or threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    actions = {signal.SIGTERM: stop, signal.SIGALRM: again}
    earlier = {number: signal.signal(number, action) for number, action in actions.items()}
    try:
        yield
    except Told:
        print("\nSIGTERM: stopped where there is nothing to save; run the same command to resume")
        raise SystemExit(0) from None
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, action in earlier.items():
            signal.signal(number, action)
