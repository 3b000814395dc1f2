"""CTranslate2 as a translation engine for presets; imports neither Keras nor TensorFlow."""

import math
import os
from pathlib import Path
from typing import Literal

from kzoo.errors import UserError, first_line

Engine = Literal["auto", "keras", "ctranslate2"]
Device = Literal["auto", "cpu", "cuda"]  # of CTranslate2; Keras chooses its own
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container on Linux, such as of `docker run --cpus 2`


def import_ctranslate2():
    """Return the package `ctranslate2`.

    Raises:
        UserError: it cannot be imported.
    """
    try:
        import ctranslate2
        from ctranslate2 import Translator  # noqa: F401, which is missing if its library is
    except (ImportError, OSError) as error:
        reason = f"CTranslate2 cannot be imported ({first_line(error)}): install ctranslate2"
        raise UserError(reason) from None
    return ctranslate2


def usable_cores(quota: Path = QUOTA) -> int:
    """Return the number of cores that this process may use, also by a container's limit in `quota`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        most, period = quota.read_text().split()  # microseconds, or "max"
        return min(cores, math.ceil(int(most) / int(period)))
    except (OSError, ValueError):
        return cores
