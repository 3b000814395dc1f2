"""Training from recipes: each names a preset, a corpus and hyperparameters."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
