"""Where a run trains: the strategy that the user names, or the one that uses all devices and processes."""

import contextlib
import json
import os
import socket

import keras

from kzoo.errors import UserError, first_line, nearest
from kzoo.training.strategies import (
    KERAS_PROCESSES,
    TF_CONFIG,
    VARIABLES,
    DataParallel,
    Mirrored,
    ModelParallel,
    MultiWorker,
    Strategy,
)

STRATEGIES = {
    "one": Strategy,
    "mirrored": Mirrored,
    "multi_worker": MultiWorker,
    "data_parallel": DataParallel,
    "model_parallel": ModelParallel,
}
# Each backend's default strategies: for several processes, and for several devices of one process.
SEVERAL = {"tensorflow": ("multi_worker", "mirrored"), "jax": ("data_parallel", "data_parallel")}


def open_strategy(name: str | Strategy = "") -> Strategy:
    """Return a strategy, connected to its other workers if it has any.

    Call it before the backend computes anything: afterwards, TensorFlow and JAX cannot join other processes.

    Args:
        name: one of `STRATEGIES`; or a strategy, which is returned. Empty: the processes that the environment
            names; without any, all GPUs if there are several, else one device.

    Raises:
        UserError: an unknown name, a strategy that the backend lacks, or environment variables that do not
            fit.
    """
    if isinstance(name, Strategy):
        return name
    backend = keras.backend.backend()
    name = name or _default(backend)
    if name not in STRATEGIES:
        raise UserError(f"there is no strategy {name!r}; {nearest(name, list(STRATEGIES))}")
    kind = STRATEGIES[name]
    if backend not in kind.backends:
        available = [other for other, strategy in STRATEGIES.items() if backend in strategy.backends]
        raise UserError(
            f"strategy {name} needs the backend {' or '.join(kind.backends)} (KERAS_BACKEND): "
            f"{backend} has {', '.join(available)}"
        )
    try:
        opened = kind()
    except UserError:
        raise
    except Exception as error:  # each backend has its own error classes
        raise UserError(
            f"strategy {name} cannot start ({first_line(error):.160}): check that all workers run at the "
            f"addresses in {VARIABLES[backend][0]}"
        ) from None
    print(f"strategy {name}: {opened}")
    return opened


def _default(backend: str) -> str:
    """Return the strategy that uses everything available to the backend."""
    processes, devices = SEVERAL.get(backend, ("one", "one"))
    if names_processes(backend):
        return processes
    if names_processes():  # of which each would train alone
        raise UserError(
            f"the environment names workers for another backend than {backend}: set KERAS_BACKEND, or unset "
            f"{' and '.join(name for names in VARIABLES.values() for name in names if os.environ.get(name))}"
        )
    if devices == "one":
        return devices
    try:
        found = keras.distribution.list_devices()
    except Exception as error:  # each backend has its own error classes
        raise UserError(f"{backend} finds no device ({first_line(error):.160})") from None
    return devices if sum(not name.startswith("cpu") for name in found) > 1 else "one"


def names_processes(*backends: str) -> bool:
    """Return whether the environment names processes for one of these backends; by default for any."""
    return any(
        os.environ.get(name) for backend in backends or VARIABLES for name in VARIABLES.get(backend, ())
    )


def local_cluster(workers: int) -> list[dict[str, str]]:
    """Return each worker's environment variables for a run of several processes on this machine.

    They name the processes for TensorFlow and for JAX, and the library with which JAX connects CPUs.

    Example:

    >>> [json.loads(variables["TF_CONFIG"])["task"]["index"] for variables in local_cluster(2)]
    [0, 1]
    """
    with contextlib.ExitStack() as held:
        listeners = [held.enter_context(socket.socket()) for _ in range(workers)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        addresses = [f"127.0.0.1:{listener.getsockname()[1]}" for listener in listeners]
    return [
        {
            TF_CONFIG: json.dumps(
                {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": number}}
            ),
            **dict(zip(KERAS_PROCESSES, (",".join(addresses), str(workers), str(number)), strict=True)),
            "JAX_CPU_COLLECTIVES_IMPLEMENTATION": "gloo",
        }
        for number in range(workers)
    ]
