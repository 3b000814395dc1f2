"""Presets as folders of files: locating them, fetching them, and verifying their checksums.

Nothing here imports a deep-learning library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
