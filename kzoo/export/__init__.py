"""Trained translators for other programs: SavedModels from text to text, and CTranslate2 models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
