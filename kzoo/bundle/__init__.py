"""Recipes for a machine without a network: packed here by `kzoo bundle`, trained there by its `run.sh`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
