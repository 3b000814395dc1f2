"""Exports translators for other programs, in the formats of `kzoo.export_formats.FORMATS`."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
