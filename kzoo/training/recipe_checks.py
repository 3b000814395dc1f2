"""Recipes from values, checked: types and bounds, combinations, keys without effect, and the model's fit."""

import dataclasses
import math
import re
import typing
from collections.abc import Iterable, Sequence

import msgspec

from kzoo.errors import UserError, nearest, wrong_value
from kzoo.presets.builders import BUILDERS, check_arguments, reads_glyphs, reads_pictures
from kzoo.text.languages import has_two_kinds_of_i, matching_code, not_known
from kzoo.training.recipe import BUILDER, KEYS, Recipe

# Mistaken for languages' codes, and the right ones: with `jp`, BLEU would have the wrong tokenizer.
COUNTRIES = {"cn": "zh", "cz": "cs", "dk": "da", "gr": "el", "jp": "ja", "ua": "uk", "vn": "vi"}

# Keys of other tools, and ours.
OTHER_TOOLS = {
    "batch_size": "tokens (rows of a multilingual model: sentences)",
    "clip_grad_norm": "clip_norm",
    "dropout": "model.dropout",
    "early_stopping": "patience",
    "fp16": "precision",
    "gradient_accumulation_steps": "accumulate",
    "learning_rate": "rate, with optimizer adam or sgd; rate_factor, with noam",
    "max_epochs": "epochs",
    "max_grad_norm": "clip_norm",
    "max_steps": "steps",
    "num_train_epochs": "epochs",
    "per_device_train_batch_size": "tokens (rows of a multilingual model: sentences)",
    "source_lang": "source",
    "src_lang": "source",
    "target_lang": "target",
    "tgt_lang": "target",
    "update_freq": "accumulate",
    "vocab_size": "vocabulary_size",
    "warmup": "warmup_steps",
}
OTHER_TOOLS["lr"] = OTHER_TOOLS["learning_rate"]


def check_recipe(recipe: Recipe) -> Recipe:
    """Check a recipe made in Python, and return it as `read_recipe` would: with lists instead of tuples.

    Raises:
        UserError: as `read_recipe`.
    """
    return checked(dataclasses.asdict(recipe), "the recipe")


def checked(values: dict, where: str) -> Recipe:
    """Return the recipe with these values, checked as `read_recipe` does."""
    recipe = make_recipe(values, where)
    check_have_effect(recipe, where)
    if recipe.preset in BUILDERS:
        _check_builder(recipe)
    return recipe


def make_recipe(values: dict, where: str = "the recipe") -> Recipe:
    """Return the recipe with these values, after checking their types and bounds.

    Raises:
        UserError: an unknown or missing key, a value of the wrong type, or values that cannot be combined.
    """
    for name in {"train", "val", "test"} & values.keys():
        if isinstance(values[name], str):  # one table
            values = {**values, name: [values[name]]}
    for name, value in values.items():
        if name in OTHER_TOOLS:
            raise UserError(f"{where} has an unknown key {name!r}: kzoo's is {OTHER_TOOLS[name]}")
        if name not in KEYS:
            raise UserError(
                f"{where} has an unknown key {name!r} (an argument of the model is model.{name}); "
                f"{nearest(name, list(KEYS))}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{where}: {name} is {value!r}, not a finite number")
    if missing := [name for name in ("preset", "corpus") if name not in values]:  # all others have defaults
        own = 'corpus = "files" and the lines that `kzoo train RECIPE --show` prints'
        raise UserError(f"{where} lacks {', '.join(missing)}: for your own text, add {own}")
    try:
        recipe = msgspec.convert(values, Recipe)
    except msgspec.ValidationError as error:
        message = wrong_value(values, error)
        name = message.split(" ", 1)[0]
        choices = _choices(KEYS[name].type)
        if choices and "invalid enum value" in message:
            message = f"{name} is {values[name]!r}, not one of {', '.join(choices)}"
        raise UserError(f"{where}: {message}") from None
    _check_combinations(recipe, where)
    return recipe


def _choices(kind: type) -> list[str]:
    """Return the choices of a `Literal`, or of one beside true and false."""
    if parts := typing.get_args(kind):
        return [choice for part in parts for choice in ([part] if isinstance(part, str) else _choices(part))]
    return ["true", "false"] if kind is bool else []


def _check_combinations(recipe: Recipe, where: str):
    """Raise `UserError` for values that cannot be combined."""
    if bool(recipe.languages) == bool(recipe.source and recipe.target):
        raise UserError(f"{where} needs source and target, or languages for a multilingual model, not both")
    for code in (recipe.source, recipe.target, *recipe.languages):
        # Vocabularies' file names contain the code, in a multilingual preset too.
        odd = code in recipe.languages and not re.fullmatch(r"[\w-]+", code, re.ASCII)
        if odd or "/" in code or "\\" in code or code == "..":
            raise UserError(f"{where}: language code {code!r}: use letters, digits and hyphens")
        if recipe.text == "truecased" and has_two_kinds_of_i(code):
            raise UserError(
                f"{where}: text = 'truecased' does not support dotted and dotless i in language {code!r}"
            )
        if right := COUNTRIES.get(code.lower()):
            raise UserError(f"{where}: {code!r} is a country's code; the language's is {right!r}")
    if taken := {"dtype", "name"} & recipe.model.keys():
        raise UserError(
            f"{where}: model cannot set {', '.join(sorted(taken))}: precision sets the dtype, preset the name"
        )
    if recipe.minutes and not recipe.cooldown:
        raise UserError(f"{where}: minutes need a cooldown, such as cooldown = 0.2")
    if recipe.length_penalty is not None and recipe.gnmt is not None:
        raise UserError(f"{where}: length_penalty and gnmt exclude each other: keep one of them")
    if recipe.shards and recipe.images:
        raise UserError(f"{where}: shards hold text only: remove images, or train without shards")
    own_splits = not (isinstance(recipe.val, list) and isinstance(recipe.test, list))
    if own_splits and (recipe.shards or recipe.images):
        raise UserError(
            f"{where}: with shards or images, val and test cannot be parts of train: give files for both"
        )


def check_have_effect(recipe: Recipe, where: str, names: Iterable[str] = tuple(KEYS)):
    """Raise `UserError` for values of the keys `names` that have no effect, unless they are the default."""
    defaults = vars(Recipe(recipe.preset, recipe.corpus))
    changed = [KEYS[name] for name in names if getattr(recipe, name) != defaults[name]]
    for use in dict.fromkeys(use for declared in changed for use in declared.metadata["uses"]):
        if use.holds(recipe):
            continue
        idle = ", ".join(declared.name for declared in changed if use in declared.metadata["uses"])
        otherwise = use.otherwise.format(recipe=recipe)
        near = nearest(recipe.preset, list(BUILDERS)) if use is BUILDER else ""  # a misspelt builder?
        known = f" (among builders: {near})" if near.startswith("did you mean") else ""
        raise UserError(
            f"{where}: {idle} would change nothing with {otherwise}{known}: remove it, or keep its default"
        )


def _check_builder(recipe: Recipe):
    """Raise `UserError` if a recipe does not fit the model that its builder will build."""
    family = BUILDERS[recipe.preset]
    languages = recipe.languages if family == "attention_bridge" else None
    check_model(recipe, languages, reads_pictures(recipe.preset, recipe.model), family == "glyph")
    if reads_glyphs(recipe.preset, recipe.model) and not recipe.source_characters:
        raise UserError(
            f'preset {recipe.preset} reads the glyphs of characters: set source_characters = "common"'
        )
    name = "rate_factor" if recipe.optimizer == "noam" else "rate"
    if not getattr(recipe, name):
        raise UserError(f"{name} is 0, and a new model would learn nothing: raise it")
    check_arguments(recipe.preset, recipe.model)


def check_model(
    recipe: Recipe,
    languages: list[str] | None,
    pictures: bool,
    recurrent: bool,
    named: Sequence[str] = (),
):
    """Check that a recipe fits its model.

    Args:
        recipe: the recipe.
        languages: the languages of a multilingual model; `None`: a model of one direction.
        pictures: whether the model reads images.
        recurrent: whether it has a recurrent decoder.
        named: the languages that its vocabulary names, as M2M-100's: it trains in one direction or several.

    Raises:
        UserError: it does not.
    """
    several, name = languages is not None, recipe.preset
    if named:
        for code in recipe.languages:
            if not matching_code(code, named):
                raise UserError(f"preset {name} has the languages {not_known(code, named)}")
    elif several != bool(recipe.languages):
        needs = "languages" if several else "source and target"
        raise UserError(f"preset {name} needs {needs} in its recipe")
    if several and recipe.languages != languages:
        raise UserError(
            f"preset {name} has the languages {', '.join(languages)}: give the same, in this order; choose "
            "directions with centre, left_out or directions"
        )
    if recipe.language_model_epochs and not recurrent:
        raise UserError(f"{name} has no recurrent decoder to train first: remove language_model_epochs")
    if recipe.images and not pictures:
        raise UserError(f"{name} reads text only: remove images from the recipe")
    if recipe.capitals and pictures:
        raise UserError(f"{name} reads images, but rows in capitals have none: remove capitals")
    if recipe.monolingual_target and pictures:
        raise UserError(f"{name} reads images, but further text has none: remove monolingual_target")
    if recipe.shards and pictures:
        raise UserError(f"{name} reads images, but shards have none: remove shards from the recipe")
