"""Presets as folders of files: locating and fetching them, and checking that they are as published.

`kzoo.models` and `kzoo.presets` call it; nothing here imports a deep-learning library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
