"""Presets as a service: TensorFlow Serving's REST interface, dynamic batching, and a page to try them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
