"""CTranslate2 as the engine that translates, from a preset's files; imports neither Keras nor TensorFlow."""

import importlib.util
from pathlib import Path
from typing import Literal

from kzoo.decoding.search_settings import Exponent, SearchSettings
from kzoo.errors import UserError

Engine = Literal["auto", "keras", "ctranslate2"]


def chosen_engine(
    folder: Path, engine: Engine, search: SearchSettings, needs: dict[str, object] | None = None
) -> str:
    """Return the engine that translates: for `"auto"`, CTranslate2 where it gives the same translations.

    Args:
        folder: the preset.
        engine: what was asked for.
        search: how translations are searched for.
        needs: by their names, options that only Keras's search has; those that are set count.

    Raises:
        UserError: CTranslate2 was asked for and cannot do this, with the reason.
    """
    if engine == "keras":
        return "keras"
    from kzoo.engine.conversion import why_not
    from kzoo.engine.translator import why_not_searched

    try:
        reason = why_not(folder) or why_not_searched(search)
    except UserError as error:  # of a damaged preset, which Keras's way of loading tells more of
        reason = str(error)
    if only_keras := [name for name, value in (needs or {}).items() if value]:
        reason = f"CTranslate2 is not used with {' or '.join(only_keras)}"
    if importlib.util.find_spec("ctranslate2") is None:
        reason = "CTranslate2 is not installed: pip install ctranslate2"
    if engine == "ctranslate2":
        if reason:
            raise UserError(f"{reason}; leave --engine out for Keras's search")
        return engine
    # With these, its search ends with other hypotheses.
    differs = search.min_length or search.no_repeat_ngram or search.length_penalty == Exponent(0)
    return "keras" if reason or differs else "ctranslate2"
