from .checkpoints import Checkpoints as Checkpoints
from .preparation import prepare as prepare
from .recipe import Recipe as Recipe
from .recipe_checks import make_recipe as make_recipe
from .recipe_files import read_recipe as read_recipe
from .run import train as train
from .validation import TranslationScore as TranslationScore
