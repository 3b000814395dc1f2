"""One line in place of the stack with which JAX ends a process as it hears that another of the run is gone.

JAX ends it from a thread of its own, and no Python runs in it after that. So another process reads what JAX
writes.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

LOST_A_WORKER = (
    "the connection to another worker is lost, or it never came: see what it says, then start all workers "
    "again; the run goes on from its last checkpoint"
)
JAX_SAYS = b"the JAX distributed service detected fatal errors"


@contextlib.contextmanager
def reworded_fatal_errors() -> Iterator[None]:
    """Let a reader pass on what this process writes as errors; what Python itself writes goes past it."""
    if os.getpid() == 1:  # a container ends with it, and its reader too before it could say anything
        yield
        return
    sys.stderr.flush()
    standard_error, python_s = os.dup(2), sys.stderr
    # Ctrl-C is for this process: it may have something to say.
    reader = subprocess.Popen([sys.executable, "-I", __file__], stdin=subprocess.PIPE, start_new_session=True)
    # Closed by none but who holds it last: handlers of logging may.
    sys.stderr = os.fdopen(standard_error, "w", buffering=1, errors="backslashreplace")
    os.dup2(reader.stdin.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(standard_error, 2)
        sys.stderr = python_s
        reader.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):  # other processes may still write to it
            reader.wait(timeout=1)


def pass_on(lines, written):
    """Write lines of bytes as they come, up to JAX's last words, which become one line."""
    for line in lines:
        if JAX_SAYS in line:
            written.write(f"error: {LOST_A_WORKER}\n".encode())
            break
        written.write(line)
        written.flush()


if __name__ == "__main__":
    pass_on(sys.stdin.buffer, sys.stderr.buffer)
