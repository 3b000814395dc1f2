"""A recipe's corpus, languages and directions."""

from kzoo.data import open_corpus, open_files
from kzoo.data.corpora import Corpus
from kzoo.data.language_pairs import language_pairs
from kzoo.presets.shelf import is_builder
from kzoo.training.recipe import Recipe


def recipe_corpus(recipe: Recipe) -> Corpus:
    """Return a recipe's corpus.

    Raises:
        UserError: no corpus has that name, or one of its files is missing.
    """
    if recipe.corpus != "files":
        corpus = open_corpus(recipe.corpus)
    else:
        # A machine with the shards needs no training text.
        names = ("val", "test") if recipe.shards else ("train", "val", "test")
        splits = {name: getattr(recipe, name) or None for name in names}
        corpus = open_files(**splits, languages=text_languages(recipe), columns=recipe.columns)
    return corpus.with_images(recipe.images) if recipe.images else corpus


def check_own_files(recipe: Recipe):
    """Read the user's own files, to report errors in them before a backend is loaded.

    Raises:
        UserError: as for `recipe_corpus`; or a file is broken, empty, or not aligned with the others.
    """
    if recipe.corpus != "files":
        return
    corpus = recipe_corpus(recipe)
    first, *others = corpus.languages
    for split in corpus.splits:
        for language in others:
            corpus.pairs(split, first, language)
        corpus.more_references(split, corpus.languages[-1])


def recipe_directions(recipe: Recipe) -> list[tuple[str, str]]:
    """Return the (source, target) directions that a multilingual recipe trains.

    Raises:
        UserError: as for `language_pairs`.
    """
    chosen = recipe.centre, recipe.left_out, recipe.monolingual, recipe.directions
    return language_pairs(recipe.languages, *chosen)


def text_languages(recipe: Recipe) -> list[str]:
    """Return the languages whose text a recipe needs.

    A trained preset has all vocabularies, so it needs text only of the languages that are trained further.
    """
    if not recipe.languages:
        return [recipe.source, recipe.target]
    if is_builder(recipe.preset):
        return recipe.languages
    trained = {language for pair in recipe_directions(recipe) for language in pair}
    return [language for language in recipe.languages if language in trained]
