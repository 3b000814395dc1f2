"""Trained translators for others' programs: SavedModels that take text and return text."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__, submod_attrs={"saved_model": ["export_saved_model"]}
)
