"""Presets as folders of files: locating and fetching them, and checking that they are as published.

`kzoo.models` and `kzoo.presets` call it; nothing here imports a deep-learning library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "integrity": ["seal"],
        "location": ["locate"],
    },
)
