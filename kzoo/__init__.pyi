from . import data as data
from . import decoding as decoding
from . import evaluation as evaluation
from . import hub as hub
from . import layers as layers
from . import models as models
from . import presets as presets
from . import text as text
from . import training as training

__version__: str
