"""One line instead of the stack trace with which JAX ends a process when another of the run's is lost.

JAX ends the process from its own thread, and no Python code runs after that. So another process reads what
JAX writes.
"""

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator

LOST_A_WORKER = (
    "lost the connection to another worker, or it never connected: see its output, then restart all workers; "
    "the run resumes from its last checkpoint"
)
JAX_SAYS = b"the JAX distributed service detected fatal errors"


@contextlib.contextmanager
def reworded_fatal_errors() -> Iterator[None]:
    """Let a reader process pass on this process's standard error; what Python itself writes bypasses it."""
    if os.getpid() == 1:  # a container ends with it, and so does the reader, before it could write anything
        yield
        return
    sys.stderr.flush()
    standard_error, python_s = os.dup(2), sys.stderr
    # Ctrl-C must not end the reader: this process may still have something to write.
    reader = subprocess.Popen([sys.executable, "-I", __file__], stdin=subprocess.PIPE, start_new_session=True)
    # Not closed here: logging handlers may still hold it.
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
    """Write lines of bytes as they arrive, up to JAX's fatal error, which becomes one line."""
    for line in lines:
        if JAX_SAYS in line:
            written.write(f"error: {LOST_A_WORKER}\n".encode())
            break
        written.write(line)
        written.flush()


if __name__ == "__main__":
    pass_on(sys.stdin.buffer, sys.stderr.buffer)
