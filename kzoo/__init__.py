"""kzoo: a Keras 3 model zoo for machine translation.

The packages, in the order in which a sentence passes through them: `data`, `text`, `presets` (built from
`models`, which are built from `layers`), `decoding`; around them `training`, `evaluation` and `hub`. Each
is imported on first use, so that `import kzoo` costs nothing. `kzoo.export` and `kzoo.serve` need additional
dependencies and are imported by name.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
