from .preset import Preset as Preset
from .preset import seal as seal
