"""kzoo: a Keras 3 model zoo for machine translation.

A sentence passes through the packages `data`, `text`, `presets` (built from `models` and `layers`) and
`decoding`. Around them are `training`, `evaluation` and `hub`. Packages are imported on first use, so
`import kzoo` is fast. `kzoo.export` and `kzoo.serve` need additional dependencies: import them explicitly.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
