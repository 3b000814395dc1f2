"""Trained translators for other programs: SavedModels from text to text, and CTranslate2 models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"ctranslate2": ["export_ctranslate2"], "saved_model": ["export_saved_model"]}
)
