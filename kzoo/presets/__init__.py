"""Models by name: builders make untrained ones (`pope_base()`), `load(NAME)` returns trained ones.

Listing presets imports no deep-learning library; building and loading a model does.
"""

import lazy_loader

from kzoo.errors import nearest

_attribute, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


def __getattr__(name: str):
    if name not in __all__:
        raise AttributeError(f"{__name__} has no {name!r}; {nearest(name, __all__)}")
    return _attribute(name)
