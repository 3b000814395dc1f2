"""A run's folder belongs to one process at a time: `train` holds it while it writes there."""

import contextlib
import fcntl
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from kzoo.errors import UserError

LOCK = ".lock"  # kept when a run ends; one that is refused removes it with all that it wrote


@contextlib.contextmanager
def one_process(folder: Path) -> Iterator[None]:
    """Keep other processes from training in a folder until the block ends, or this process ends in any way.

    Args:
        folder: the run's folder; created if it is missing.

    Raises:
        UserError: another process trains there, or the folder cannot be written.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UserError(f"{folder}: cannot be written ({error.strerror})") from None
    try:
        _hold(lock, folder)
        yield
    finally:
        os.close(lock)


def _hold(lock: int, folder: Path):
    """Lock the file of this descriptor, and write into it which process holds it."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(lock, 200, 0).decode(errors="replace").strip() or "another process"
        raise UserError(f"{folder}: {holder} trains here; stop it, or give another folder") from None
    except OSError as error:  # some network file systems; training there worked before there was a lock
        print(f"{folder} cannot be locked ({error.strerror}): do not start a second run in this folder")
        return
    if os.fstat(lock).st_nlink == 0:  # a third process would make another file, and hold that
        raise UserError(f"{folder}: another run was refused here just now: start this one again")
    with contextlib.suppress(OSError):  # a full disk: the lock holds even without a name
        os.ftruncate(lock, 0)
        os.pwrite(lock, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
