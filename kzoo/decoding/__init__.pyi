from .beam_search import BeamSearch as BeamSearch
from .search_settings import GNMT as GNMT
from .search_settings import Exponent as Exponent
from .search_settings import SearchSettings as SearchSettings
from .text_translator import TextTranslator as TextTranslator
