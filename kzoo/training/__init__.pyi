from .checkpoints import Checkpoints as Checkpoints
from .preparation import prepare as prepare
from .recipe import Recipe as Recipe
from .recipe import make_recipe as make_recipe
from .recipe import read_recipe as read_recipe
from .train import train as train
from .translation_score import TranslationScore as TranslationScore
