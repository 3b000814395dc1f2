from .beam_search import BeamSearch as BeamSearch
from .length_penalty import GNMT as GNMT
from .length_penalty import Exponent as Exponent
from .search_settings import SearchSettings as SearchSettings
