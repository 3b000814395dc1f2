"""Where a run trains: the strategy that the user names, or the one that uses all devices and processes."""

import os

import keras

from kzoo.errors import UserError, first_line, nearest
from kzoo.training.strategies import VARIABLES, DataParallel, Mirrored, ModelParallel, MultiWorker, Strategy

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
    if named := names_processes():  # of which each would train alone
        raise UserError(
            f"the environment names workers for another backend than {backend}: set KERAS_BACKEND, or unset "
            f"{' and '.join(named)}"
        )
    if devices == "one":
        return devices
    try:
        found = keras.distribution.list_devices()
    except Exception as error:  # each backend has its own error classes
        raise UserError(f"{backend} finds no device ({first_line(error):.160})") from None
    return devices if sum(not name.startswith("cpu") for name in found) > 1 else "one"


def names_processes(*backends: str) -> list[str]:
    """Return the environment variables that name processes for these backends; by default for any."""
    names = [name for backend in backends or VARIABLES for name in VARIABLES.get(backend, ())]
    return [name for name in names if os.environ.get(name)]
