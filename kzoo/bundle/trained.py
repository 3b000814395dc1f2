"""Whether a recipe can fine-tune its preset: told from the preset's small files, without a backend."""

from pathlib import Path
from types import SimpleNamespace

from kzoo.errors import UserError
from kzoo.hub.integrity import check_overrides, read_object
from kzoo.presets.shelf import direction
from kzoo.training.recipe import Recipe, check_languages


def check_trained(recipe: Recipe, folder: Path):
    """Refuse a recipe that `kzoo train` would refuse when it has loaded the preset, which is in `folder`.

    Raises:
        UserError: the preset has other languages, or an argument that the recipe's `model` may not replace.
    """
    settings = read_object(folder / "translator.json")
    check_languages(recipe, "languages" in settings)
    if recipe.languages:
        check_same_languages(recipe, settings["languages"])
    else:
        direction(SimpleNamespace(**settings), recipe.source, recipe.target)
    check_overrides(recipe.preset, read_object(folder / "config.json")["config"], recipe.model)


def check_same_languages(recipe: Recipe, languages: list[str]):
    """Refuse other languages than those of the trained preset that a recipe fine-tunes."""
    if recipe.languages != languages:
        raise UserError(
            f"preset {recipe.preset} has the languages {', '.join(languages)}: give the same, "
            "in this order; centre, left_out or directions choose pairs"
        )
