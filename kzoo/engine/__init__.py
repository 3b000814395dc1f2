"""CTranslate2 as a translation engine for presets; imports neither Keras nor TensorFlow."""

import os
from pathlib import Path
from typing import Literal, get_args

from kzoo.decoding.search_settings import Exponent, SearchSettings
from kzoo.errors import UserError

Engine = Literal["auto", "keras", "ctranslate2"]


def engine_name(translator) -> str:
    """Return the name of a translator's engine, with CTranslate2's compute type."""
    kind = getattr(translator, "engine", "keras")
    return f"{kind} {translator.compute_type}" if kind == "ctranslate2" else kind


def chosen_engine(
    folder: Path, engine: Engine, search: SearchSettings, needs: dict[str, object] | None = None
) -> str:
    """Return the engine that translates: for `"auto"`, CTranslate2 where it gives the same translations.

    Args:
        folder: the preset.
        engine: the requested engine.
        search: the search settings.
        needs: by name, the values of options that only Keras supports.

    Raises:
        UserError: CTranslate2 is requested but does not support this.
    """
    if engine == "keras":
        return "keras"
    from kzoo.engine.conversion import why_not

    try:
        reason = why_not(folder)
    except UserError as error:  # a damaged preset; loading it with Keras gives a better message
        reason = str(error)
    return chosen(engine, reason, search, needs)


def chosen(
    engine: Engine, reason: str | None, search: SearchSettings, needs: dict[str, object] | None = None
) -> str:
    """Return the engine as `chosen_engine` does, given why CTranslate2 cannot hold the model.

    Args:
        engine, search, needs: as in `chosen_engine`.
        reason: why CTranslate2 cannot hold the model; `None` if it can.

    Raises:
        UserError: as for `chosen_engine`; or an unknown engine.
    """
    if engine not in get_args(Engine):
        raise UserError(f"engine must be one of {', '.join(get_args(Engine))}, not {engine!r}")
    if engine == "keras":
        return "keras"
    from kzoo.engine.translator import why_not_searched

    reason = reason or why_not_searched(search)
    if only_keras := [name for name, value in (needs or {}).items() if value]:
        reason = f"CTranslate2 is not used with {' or '.join(only_keras)}"
    if engine == "ctranslate2":
        if reason:
            raise UserError(f"{reason}; leave engine (--engine) out to use Keras")
        return engine
    # With these settings, its search finds other hypotheses.
    differs = search.min_length or search.no_repeat_ngram or search.length_penalty == Exponent(0)
    return "keras" if reason or differs else "ctranslate2"


def usable_cores() -> int:
    """Return the number of cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
