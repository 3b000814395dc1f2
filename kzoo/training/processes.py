"""The environment variables that name the processes which train together."""

import os

TF_CONFIG = "TF_CONFIG"
KERAS_PROCESSES = (
    "KERAS_DISTRIBUTION_JOB_ADDRESSES",
    "KERAS_DISTRIBUTION_NUM_PROCESSES",
    "KERAS_DISTRIBUTION_PROCESS_ID",
)
VARIABLES = {"tensorflow": (TF_CONFIG,), "jax": KERAS_PROCESSES}  # by backend


def names_processes(*backends: str) -> list[str]:
    """Return the environment variables that name processes for these backends; by default for any."""
    names = [name for backend in backends or VARIABLES for name in VARIABLES.get(backend, ())]
    return [name for name in names if os.environ.get(name)]
