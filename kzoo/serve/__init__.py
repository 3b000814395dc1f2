"""Presets as a service: TensorFlow Serving's REST interface, dynamic batching, and a page to try them."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "app": ["create_app"],
        "checks": ["Limits"],
        "served": ["Served"],
        "server": ["reserved", "serve"],
    },
)
