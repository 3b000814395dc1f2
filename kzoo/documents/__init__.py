"""Documents, such as those of word processors: their texts, and the same documents with translations.

`kzoo/documents/document.py` has what all formats have in common, and the other files a format or two each.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
