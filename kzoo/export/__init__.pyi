from .argos import export_argos as export_argos
from .formats import export_ctranslate2 as export_ctranslate2
from .formats import export_saved_model as export_saved_model
