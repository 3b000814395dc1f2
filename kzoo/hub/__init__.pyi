from .integrity import seal as seal
from .location import locate as locate
