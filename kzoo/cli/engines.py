"""Open a preset with the engine that translates it."""

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
    """Return a preset's translator, CTranslate2's or Keras's, which is started only if it is needed.

    Args:
        preset: as the user wrote it.
        folder: where it was located.
        search: how it is to search.
        engine, compute_type: the options of these names.
        needs: as in `chosen_engine`.
    """
    if chosen_engine(folder, engine, search, needs) == "ctranslate2":
        from kzoo.engine.translator import CTranslate2Translator

        translator = CTranslate2Translator(folder, compute_type)
    else:
        start_backend()
        translator = shelf.load(preset)
    translator.search = search
    return translator
