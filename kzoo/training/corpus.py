"""The corpus of a recipe, opened to train on, to score on, or to pack for another machine."""

import contextlib
from collections.abc import Iterator

from kzoo.data import open_corpus, open_files
from kzoo.data.corpora import Corpus
from kzoo.data.language_pairs import language_pairs
from kzoo.errors import UserError
from kzoo.presets.shelf import is_builder
from kzoo.training.recipe import Recipe


def recipe_corpus(recipe: Recipe) -> Corpus:
    """Return the corpus that the recipe names.

    Raises:
        UserError: no corpus has that name, or one of its files is missing.
    """
    if recipe.corpus != "files":
        corpus = open_corpus(recipe.corpus)
    else:
        # The text that shards were made from need not be on the machine that has them.
        names = ("val", "test") if recipe.shards else ("train", "val", "test")
        splits = {name: getattr(recipe, name) or None for name in names}
        corpus = open_files(**splits, languages=text_languages(recipe), columns=recipe.columns)
    return corpus.with_images(recipe.images) if recipe.images else corpus


def check_own_files(recipe: Recipe):
    """Read the user's own files, so that what is wrong with them is said before a backend is loaded.

    Raises:
        UserError: as `recipe_corpus`; or a file is broken, empty, or not aligned with the others.
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
        UserError: as `language_pairs`.
    """
    chosen = recipe.centre, recipe.left_out, recipe.monolingual, recipe.directions
    return language_pairs(recipe.languages, *chosen)


def text_languages(recipe: Recipe) -> list[str]:
    """Return the languages whose text a recipe needs.

    A trained preset needs none for a language that it is not trained further in: it has all vocabularies.
    """
    if not recipe.languages:
        return [recipe.source, recipe.target]
    if is_builder(recipe.preset):
        return recipe.languages
    trained = {language for pair in recipe_directions(recipe) for language in pair}
    return [language for language in recipe.languages if language in trained]


@contextlib.contextmanager
def naming(corpus: Corpus, split: str, *languages: str) -> Iterator[None]:
    """Add to an error about sentences where they are from: the split, and the languages' files."""
    try:
        yield
    except UserError as error:
        files = dict.fromkeys(corpus.read(split, language).where for language in languages)
        raise UserError(f"split {split} ({', '.join(files)}): {error}") from None
