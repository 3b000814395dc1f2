"""From a recipe to the task that prepares what is trained."""

from kzoo.data import Corpus
from kzoo.training.corpus import recipe_corpus
from kzoo.training.one_direction import OneDirection
from kzoo.training.prepared_run import Task
from kzoo.training.recipe import Recipe
from kzoo.training.several_directions import SeveralDirections


def recipe_task(recipe: Recipe, corpus: Corpus | None = None) -> Task:
    """Return the task of a recipe, with its text: the `corpus`, which by default is opened.

    Raises:
        UserError: the text cannot be used.
    """
    kind = SeveralDirections if recipe.languages else OneDirection
    return kind.of(recipe, corpus or recipe_corpus(recipe))
