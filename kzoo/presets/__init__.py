"""Models by name: builders make untrained ones (`pope_base()`), `load(NAME)` returns trained ones.

Listing presets imports no deep-learning library; building and loading a model does.
"""

import lazy_loader

from kzoo.errors import with_nearest

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_nearest(__name__, __getattr__, __all__)
