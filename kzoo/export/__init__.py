"""Exports translators for other programs: as SavedModels from text to text, and as CTranslate2 models."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
