"""The corpus on which a preset is scored if the user names none."""

from dataclasses import replace
from pathlib import Path

from kzoo.errors import UserError


def own_corpus(folder: Path, splits: list[str]):
    """Return the corpus of a preset's run; outside of one, that of its scores.

    Raises:
        UserError: there is none: a preset from elsewhere may be of any text.
    """
    from kzoo.data.corpora import CORPORA, open_corpus
    from kzoo.presets.description import scored_corpus
    from kzoo.training.corpus import recipe_corpus
    from kzoo.training.run_folder import recorded_recipe

    try:
        if folder.name == "preset" and (recipe := recorded_recipe(folder.parent)):
            if recipe.corpus == "files":
                if not (recipe.test or splits):
                    raise UserError(f"the recipe of {folder.parent} has no test set")
                if isinstance(recipe.val, list) and isinstance(recipe.test, list):
                    # What is not asked for may no longer be there.
                    recipe = replace(recipe, train=[], val=recipe.val if "val" in splits else [])
            return recipe_corpus(recipe)
    except UserError as error:
        raise UserError(f"{error}; give --corpus, or --files") from None
    own = scored_corpus(folder)  # "files" for those of a user
    if own not in CORPORA:
        raise UserError(
            f"preset {folder} does not say on which corpus to score it: give --corpus, or --files"
        )
    return open_corpus(own)
