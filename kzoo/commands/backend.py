"""Starts Keras for a command."""

import os
import sys

from kzoo.errors import UserError


def start_backend(strategy: str | None = None):
    """Import Keras without its backend's start-up messages, which TensorFlow has no setting to silence.

    Returns:
        For a run, its strategy, opened: other processes can be joined only before the backend has started.
    """
    import logging

    logging.getLogger("tensorflow").setLevel(logging.ERROR)
    sys.stderr.flush()
    standard_error = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    try:
        import keras

        opened = None
        if strategy is not None:
            from kzoo.training.strategies import open_strategy

            opened = open_strategy(strategy)
        keras.ops.zeros(())  # looks for devices
        return opened
    except UserError:
        raise
    except (ImportError, ValueError) as error:
        backend = os.environ.get("KERAS_BACKEND", "tensorflow")
        raise UserError(f"Keras cannot start its backend {backend!r} (KERAS_BACKEND): {error}") from None
    finally:
        os.dup2(standard_error, 2)
        os.close(standard_error)
        os.close(nowhere)
