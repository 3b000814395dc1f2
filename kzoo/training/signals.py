"""SIGTERM and Ctrl-C while a run has nothing to save: before its first step, or after its last."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class Told(BaseException):
    """The process was told to stop: raised out of the running code, and handled by the code around it."""


@contextlib.contextmanager
def handled(receive: Callable) -> Iterator[None]:
    """Let a function receive both signals in the block; only the main thread can."""
    main = threading.current_thread() is threading.main_thread()
    signals = (signal.SIGTERM, signal.SIGINT) if main else ()
    earlier = {number: signal.signal(number, receive) for number in signals}
    try:
        yield
    finally:
        for number, action in earlier.items():
            signal.signal(number, action)


@contextlib.contextmanager
def nothing_to_save(workers: int = 1) -> Iterator[None]:
    """Let SIGTERM end the block at once, with exit status 0, and Ctrl-C with `KeyboardInterrupt`.

    Python only reports what is raised in a callback, such as one of its garbage collector: an exception that
    was lost is raised at the block's end. One of several workers just ends, as it would without this, which
    also ends the others.
    """
    told = None

    def stop(number, frame):
        nonlocal told
        told = KeyboardInterrupt if number == signal.SIGINT else Told
        raise told

    if workers > 1:
        yield
        return
    try:
        with handled(stop):
            yield
            if told:
                raise told
    except Told:
        print("\nSIGTERM: stopped where there is nothing to save; run the same command to resume")
        raise SystemExit(0) from None
