"""Opening a preset with its engine."""

from pathlib import Path

from kzoo.cli.console import start_backend
from kzoo.decoding.search_settings import SearchSettings
from kzoo.engine import Engine, chosen_engine
from kzoo.presets import shelf


def open_translator(
    preset: str,
    folder: Path,
    search: SearchSettings,
    engine: Engine = "keras",
    compute_type: str = "float32",
    needs: dict[str, object] | None = None,
):
    """Return a preset's translator, of CTranslate2 or of Keras. Keras is imported only if it is used.

    `folder` is where the preset is; `needs` are those of `chosen_engine`.
    """
    from kzoo.engine.conversion import why_not

    if chosen_engine(engine, lambda: why_not(folder), search, needs) == "ctranslate2":
        from kzoo.engine.translator import CTranslate2Translator

        translator = CTranslate2Translator(folder, compute_type)
    else:
        start_backend()
        translator = shelf.load(preset)
    translator.search = search
    return translator
