"""A file of results that grows as they are made: a command that was stopped goes on where it was."""

import contextlib
import hashlib
import os
import shutil
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from filelock import lock_descriptor

from kzoo.data.text_files import packing_of
from kzoo.errors import UserError
from kzoo.files import whole_file


@contextlib.contextmanager
def growing_file(path: Path, made_of: str) -> Iterator[BinaryIO]:
    """Yield a file to append to, at its end; when the block ends without an error it becomes `path`.

    Until then it is `NAME.DIGEST.part` beside it, with what earlier calls wrote there. If the name of `path`
    ends in `.gz`, `.bz2` or `.xz`, it is packed in the end. A device or a pipe is written to directly.

    Args:
        path: the file.
        made_of: what its contents depend on; another text begins another file.

    Raises:
        UserError: another process writes it.
    """
    if path.exists() and not path.is_file():
        with open(path, "wb") as file:
            yield file
        return
    path = path.resolve()
    part = path.with_name(f"{path.name}.{hashlib.sha256(made_of.encode()).hexdigest()[:8]}.part")
    with open(part, "a+b") as file:
        if not lock_descriptor(file.fileno(), blocking=False):
            raise UserError(f"{part}: another process writes it")
        try:
            yield file
            file.flush()
            with whole_file(path) as whole:
                _packed(part, whole, packing_of(path))
        finally:
            if part.exists() and not part.stat().st_size:
                part.unlink()


def _packed(part: Path, whole: Path, packing: Callable | None):
    if packing is None:
        os.replace(part, whole)
        return
    with open(part, "rb") as file, packing(whole, "wb") as packed:
        shutil.copyfileobj(file, packed)
    part.unlink()


class _Stopped(BaseException):
    """SIGTERM came, or Ctrl-C: raised out of the running code."""


@contextlib.contextmanager
def telling_when_stopped(line: Callable[[], str]) -> Iterator[None]:
    """At SIGTERM or Ctrl-C, end the process with a line on standard error, and the shell's exit status."""

    def stop(number, frame):
        raise _Stopped(number)

    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may set signal handlers
        return
    earlier = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except _Stopped as stopped:
        print(f"\n{line()}", file=sys.stderr)
        raise SystemExit(128 + stopped.args[0]) from None
    finally:
        for number, action in earlier.items():
            signal.signal(number, action)
