"""Parallel text: corpora by name or from files, and batches for training."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
