"""Start Keras for a command."""

import contextlib
import os
import re
import sys
from collections.abc import Iterator

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
        backend, reason = os.environ.get("KERAS_BACKEND", "tensorflow"), _reason(error)
        raise UserError(f"Keras cannot start its backend {backend!r} (KERAS_BACKEND): {reason}") from None
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)


def _reason(error: Exception) -> str:
    """Return the line that says why; TensorFlow's message begins with a traceback, which this line ends."""
    lines = [line for line in str(error).splitlines() if line.strip()] or [type(error).__name__]
    raised = [line for line in lines if re.match(r"\w+Error: ", line)]
    return raised[-1] if raised else lines[0]
