"""CTranslate2 as a translation engine for presets; imports neither Keras nor TensorFlow."""

import math
import os
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Literal, get_args

from kzoo.decoding.search_settings import LENGTHS, Exponent, SearchSettings, output_limit
from kzoo.errors import UserError, first_line

Engine = Literal["auto", "keras", "ctranslate2"]
Device = Literal["auto", "cpu", "cuda"]  # of CTranslate2; Keras chooses its own
QUOTA = Path("/sys/fs/cgroup/cpu.max")  # of a container on Linux, such as of `docker run --cpus 2`
# The default maximum output length of the shortest sentences.
SHORTEST_LIMIT = output_limit(SearchSettings(), LENGTHS[0], LENGTHS[-1])


def chosen_engine(
    engine: Engine,
    why_not: Callable[[], str | None],
    search: SearchSettings,
    needs: dict[str, object] | None = None,
) -> str:
    """Return the engine to use. `"auto"` chooses CTranslate2 where it gives the same translations.

    Args:
        engine: the requested engine.
        why_not: returns why CTranslate2 cannot hold the model; `None` if it can.
        search: the search settings.
        needs: by name, the values of options that only Keras supports.

    Raises:
        UserError: CTranslate2 is requested but does not support this, or cannot be imported; an unknown
            engine.
    """
    if engine not in get_args(Engine):
        raise UserError(f"engine must be one of {', '.join(get_args(Engine))}, not {engine!r}")
    if engine == "keras":
        return "keras"
    reason = why_not() or why_not_searched(search)
    if only_keras := [name for name, value in (needs or {}).items() if value]:
        reason = f"CTranslate2 is not used with {' or '.join(only_keras)}"
    if engine == "auto" and differing_settings(search):
        return "keras"
    if not reason and (reason := why_not_imported()) and engine == "auto":  # last: importing takes time
        warnings.warn(f"{reason}; Keras translates instead, more slowly", stacklevel=2)
    if reason and engine == "ctranslate2":
        raise UserError(f"{reason}; or leave engine (--engine) out to use Keras")
    return "keras" if reason else "ctranslate2"


def why_not_imported() -> str | None:
    """Return why CTranslate2 cannot be imported; `None` if it can."""
    try:
        from ctranslate2 import Translator  # noqa: F401, which is missing if its library is
    except (ImportError, OSError) as error:
        return f"CTranslate2 cannot be imported ({first_line(error)}): install ctranslate2"
    return None


def differing_settings(search: SearchSettings) -> list[str]:
    """Return the settings with which CTranslate2's beam search finds other hypotheses than Keras's."""
    differ = {
        # CTranslate2 does not score the end symbol of a sentence that it cuts, so cut sentences win.
        f"max_length={search.max_length}": search.max_length and search.max_length < SHORTEST_LIMIT,
        "min_length": search.min_length,
        "no_repeat_ngram": search.no_repeat_ngram,
        "length_penalty=0": search.length_penalty == Exponent(0),
    }
    return [name for name, given in differ.items() if given]


def why_not_searched(search: SearchSettings) -> str | None:
    """Return why CTranslate2 does not support the search settings; `None` if it does."""
    if type(search.length_penalty) is not Exponent:  # `GNMT` is a subclass
        return (
            f"CTranslate2 divides log P by length^α, it has no {search.length_penalty}: "
            "give α with --length-penalty, or in the translator's search"
        )
    if search.max_length == 1:
        return "CTranslate2 writes at least one token before the end symbol: set max_length to 2 or more"
    return None


def usable_cores(quota: Path = QUOTA) -> int:
    """Return the number of cores that this process may use, also by a container's limit in `quota`."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    try:
        most, period = quota.read_text().split()  # microseconds, or "max"
        return min(cores, math.ceil(int(most) / int(period)))
    except (OSError, ValueError):
        return cores
