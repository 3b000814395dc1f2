"""SIGTERM and Ctrl-C while a run has nothing to save: before its first step or after its last."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator


class StopRequested(BaseException):
    """A signal asks the process to stop: raised in the running code, handled by the code around it."""


@contextlib.contextmanager
def handled(receive: Callable) -> Iterator[None]:
    """Let a function receive both signals in the block. In other threads than the main one, do nothing."""
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

    Python swallows exceptions in some callbacks, such as the garbage collector's; an exception lost this way
    is raised at the block's end. With several workers, signals keep their usual effect: a worker that ends
    also ends the others.
    """
    stopped = None

    def stop(number, frame):
        nonlocal stopped
        stopped = KeyboardInterrupt if number == signal.SIGINT else StopRequested
        raise stopped

    if workers > 1:
        yield
        return
    try:
        with handled(stop):
            yield
            if stopped:
                raise stopped
    except StopRequested:
        print("\nSIGTERM: stopped where there is nothing to save; run the same command to resume")
        raise SystemExit(0) from None
