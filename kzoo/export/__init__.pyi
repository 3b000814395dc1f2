from .argos import export_argos as export_argos
from .ctranslate2 import export_ctranslate2 as export_ctranslate2
from .saved_model import export_saved_model as export_saved_model
