"""Named models: builders of untrained ones (`pope_base()`), and the shelf of trained ones (`load(NAME)`).

Finding and listing presets needs no deep-learning library; it is imported when a model is built or loaded.
"""

import lazy_loader

from kzoo.errors import with_nearest

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
__getattr__ = with_nearest(__name__, __getattr__, __all__)
