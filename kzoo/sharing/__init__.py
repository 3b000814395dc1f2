"""Presets as folders of files: where they are, how they are fetched, and whether they are what was published.

`kzoo.models` and `kzoo.presets` ask here; nothing here imports a deep-learning library.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "integrity": ["seal"],
        "location": ["locate"],
    },
)
