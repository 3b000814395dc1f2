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

    Args:
        preset: the preset, as the user wrote it.
        folder: its folder.
        search: settings of its search.
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
