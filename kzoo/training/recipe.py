"""A recipe: everything that an experiment's result depends on, read from a short TOML file."""

import dataclasses
import tomllib
from dataclasses import dataclass, field
from pathlib import Path

from kzoo.errors import UserError, nearest
from kzoo.presets.shelf import builder_module, is_builder, is_trained
from kzoo.training.recipe_effects import check_has_effect
from kzoo.training.recipe_paths import from_folder, recipe_file
from kzoo.training.recipe_values import checked_value, kind_of

SEARCH = ("beam_size", "length_penalty")  # the keys that may be `None`


@dataclass(frozen=True)
class Recipe:
    """What is trained, on what, and how.

    Args:
        preset: builder in `kzoo.presets`, such as `"pope_tiny"`; or a trained preset, as `kzoo.presets.load`
            takes it, which is fine-tuned: it keeps its vocabularies, and the optimizer starts anew.
        model: arguments given to the builder, such as `{"num_layers": 2}`; or, for a trained preset, to
            `kzoo.presets.load`, such as `{"dropout": 0.1}`.
        corpus: name of a corpus; or `"files"`, with `train`, `val` and `test`.
        train, val, test: for `"files"`: aligned text files, one per language (`source`, `target`; or those of
            `languages` that are trained, in that order), or one table (`.tsv`, `.csv`). `val` and `test` may
            be numbers: how many rows of `train` they take or, below 1, which share, so that no sentence
            stands in two splits. More files in `test` are further references.
        columns: for `"files"`: the columns of tables that have more: numbers from 1, or names in their first
            line, in the order of the languages.
        shards: folder that `kzoo prepare` has made of a training text too large for memory; empty: the text
            itself is read.
        source, target: languages of a model of one direction.
        languages: languages of a multilingual model, instead of `source` and `target`.
        centre: multilingual: only pairs with this language; empty: all pairs.
        left_out: multilingual: two languages, such as `"de-fr"`, left out in both directions.
        monolingual: multilingual: also pair each language with itself.
        directions: multilingual: such as `["en-de"]`, instead of those that `centre`, `left_out` and
            `monolingual` choose.
        pair_weights: multilingual: each pair's share of the batches, by a name such as `"de-fr"`; empty: the
            pairs take turns, each with batches in proportion to its text.
        batches_per_epoch: int. Multilingual: batches between validations; 0: one pass over all pairs.
        validation_sentences: int. Multilingual: number of sentences of the validation split that are scored
            in each direction after an epoch; 0: all.
        images: for a model that reads images: folder with features `SPLIT.npy`; empty: the corpus's own.
        validation: split that chooses the best checkpoint.
        text: what subwords are made from: `"raw"` text; or text that is Moses-normalized and tokenized, then
            `"lowercased"` or `"truecased"`. Translations are plain text; with `"lowercased"`, in lower case.
        vocabulary_size: int. Number of subwords: of both languages together with `joint_vocabulary`, else of
            each.
        joint_vocabulary: one vocabulary for both languages.
        source_characters: `"seen"`: the source's tokens are characters, those of the training text;
            `"common"`: these and the other common Chinese ones, for a model that reads glyphs. With either,
            `vocabulary_size` is the target's only.
        language_model_epochs: int. Epochs in which a recurrent decoder is first trained on the target alone.
        tokens: int. Maximum tokens per batch on either side, padding included.
        sentences: int. Multilingual: rows per batch, instead of `tokens`; 0: use `tokens`.
        num_shapes: int. Maximum number of batch shapes.
        too_long: what becomes of pairs of which a sentence is longer than the model's `max_length` or
            `tokens`: `"error"`; `"truncate"`, it is cut; `"drop"`, the pair is left out.
        epochs: int. Maximum number of epochs.
        steps: int. Maximum number of weight updates; 0: no limit.
        patience: int. Epochs without a better validation BLEU before training stops; 0: it never stops.
        optimizer: `"noam"`, Adam on Noam's schedule; `"adam"` or `"sgd"` at a constant rate.
        rate: float. Constant learning rate.
        halve_after: int. Epochs at the constant rate, which is then halved every epoch, down to 1e-5; 0: it
            is never halved.
        warmup_steps, rate_factor: Noam's schedule.
        beta_2: of Adam with Noam's schedule; at least 0 and less than 1.
        label_smoothing: float. At least 0 and less than 1.
        consistency: float. α of R-Drop (`ConsistentCrossEntropy`): each sentence pair is read twice, with
            different dropout, and the predictions should agree; 0: once.
        clip_norm: float. Maximum norm of all gradients together; 0: no clipping.
        accumulate: int. Batches per weight update, which uses their mean gradient and counts as one of
            `steps`: for large batches in little memory.
        precision: Keras dtype policy: `"float32"`, `"mixed_bfloat16"`, `"mixed_float16"`.
        average: int. Number of best checkpoints whose mean is the final weights.
        checkpoint_minutes: float. Minutes of training between checkpoints within an epoch, in addition to
            the one after each epoch: the most that a killed run loses; 0: only after epochs.
        checkpoints_kept: int. Number of latest checkpoints kept in addition to the best.
        seed: int. Fixes weights, dropout and the order of batches.
        beam_size, length_penalty: of the search that the trained preset carries; those of the preset that is
            fine-tuned by default, else 5 and 1. Validation is greedy.
    """

    preset: str
    corpus: str
    source: str = ""
    target: str = ""
    languages: list[str] = field(default_factory=list)
    centre: str = ""
    left_out: str = ""
    monolingual: bool = False
    directions: list[str] = field(default_factory=list)
    pair_weights: dict = field(default_factory=dict)
    batches_per_epoch: int = 0
    validation_sentences: int = 0
    model: dict = field(default_factory=dict)
    train: list[str] = field(default_factory=list)
    val: list[str] | float = field(default_factory=list)
    test: list[str] | float = field(default_factory=list)
    columns: list[int] | list[str] = field(default_factory=list)
    shards: str = ""
    images: str = ""
    validation: str = "val"
    text: str = "raw"
    vocabulary_size: int = 8000
    joint_vocabulary: bool = True
    source_characters: str = ""
    language_model_epochs: int = 0
    tokens: int = 2048
    sentences: int = 0
    num_shapes: int = 7
    too_long: str = "error"
    epochs: int = 40
    steps: int = 0
    patience: int = 0
    optimizer: str = "noam"
    rate: float = 1e-3
    halve_after: int = 0
    warmup_steps: int = 4000
    rate_factor: float = 1.0
    beta_2: float = 0.98
    label_smoothing: float = 0.1
    consistency: float = 0.0
    clip_norm: float = 0.0
    accumulate: int = 1
    precision: str = "float32"
    average: int = 1
    checkpoint_minutes: float = 10.0
    checkpoints_kept: int = 3
    seed: int = 1
    beam_size: int | None = None
    length_penalty: float | None = None

    @property
    def truncate(self) -> bool:
        """Whether sentences that are too long are cut."""
        return self.too_long == "truncate"


def read_recipe(path: str | Path, overrides: list[str] = (), fixed: tuple[str, ...] = ()) -> Recipe:
    """Read a recipe.

    Paths in the file are relative to its folder, those in overrides to the current one.

    Args:
        path: TOML file with the fields of `Recipe`, or the name of one of the zoo's recipes.
        overrides: each `"KEY=VALUE"`, with VALUE in TOML (`epochs=3`, `model.num_layers=2`); quotes around a
            string may be left out.
        fixed: keys, such as `"seed"` or `"model.bridge"`, that overrides may not change, because the caller
            sets them.

    Raises:
        UserError: no such file or name, invalid TOML, an unknown key, a value of the wrong type, a missing
            field, an override of a fixed key, a key that would change nothing.

    Example:

    >>> read_recipe("pope_multi30k", ["epochs=3"]).epochs
    3
    """
    path = recipe_file(path)
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(
            f"recipe {path} cannot be read: {getattr(error, 'strerror', None) or error}"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise UserError(f"recipe {path} is not TOML: {error}") from None
    values = {key: from_folder(path.parent, key, value) for key, value in values.items()}
    for override in overrides:
        key, separator, text = override.partition("=")
        if not separator:
            raise UserError(f"{override!r} is not KEY=VALUE, as in epochs=3")
        table = values
        *tables, last = key.strip().split(".")
        value = _toml_value(text.strip())
        for changed in _paths(key.strip(), value):
            if any(f"{changed}.".startswith(f"{name}.") for name in fixed):
                raise UserError(
                    f"{override!r}: {changed} is set by this script and cannot be overridden; see --help"
                )
        for name in tables:
            table = table.setdefault(name, {})
            if not isinstance(table, dict):
                raise UserError(f"{override!r}: {name} is a value, not a table")
        table[last] = value
    return _checked(values, str(path))


def check_recipe(recipe: Recipe) -> Recipe:
    """Return a recipe that may have been made in Python as if it had been read: checked, tuples as lists.

    Raises:
        UserError: as `read_recipe`.
    """
    return _checked(dataclasses.asdict(recipe), "the recipe")


def _checked(values: dict, where: str) -> Recipe:
    recipe = make_recipe(values, where)
    check_has_effect(recipe, where)
    if is_builder(recipe.preset):
        check_languages(recipe, builder_module(recipe.preset) == "attention_bridge")
    return recipe


def make_recipe(values: dict, where: str = "the recipe") -> Recipe:
    """Return the recipe with these values, checked.

    Raises:
        UserError: an unknown key, a value of the wrong type, a missing field.
    """
    kinds = {field.name: kind_of(field.type) for field in dataclasses.fields(Recipe)}
    if isinstance(values.get("truncate"), bool):  # in runs of before `too_long`
        others = {key: value for key, value in values.items() if key != "truncate"}
        values = {"too_long": "truncate" if values["truncate"] else "error", **others}
    checked = {}
    for key, value in values.items():
        if key not in kinds:
            raise UserError(
                f"{where} has an unknown key {key!r} (one of the model's would be model.{key}); "
                f"{nearest(key, list(kinds))}"
            )
        if value is not None or key not in SEARCH:  # `None`, as a run's recipe.json has it: left out
            checked[key] = checked_value(key, value, kinds[key], where)
    if missing := [key for key in ("preset", "corpus") if key not in values]:  # all others have defaults
        raise UserError(f"{where} lacks {', '.join(missing)}")
    recipe = Recipe(**checked)
    _check_together(recipe, where)
    return recipe


def _check_together(recipe: Recipe, where: str):
    """Refuse values that exclude each other."""
    if bool(recipe.languages) == bool(recipe.source and recipe.target):
        raise UserError(f"{where} needs source and target, or languages for a multilingual model")
    for code in (recipe.source, recipe.target, *recipe.languages):
        if "/" in code or "\\" in code or code == "..":  # presets name no paths
            raise UserError(f"{where}: a language's code has no slashes, unlike {code!r}")
    if taken := {"dtype", "name"} & recipe.model.keys():
        raise UserError(
            f"{where}: model has {', '.join(sorted(taken))}: precision sets the dtype, and preset the name"
        )
    if recipe.shards and (recipe.languages or recipe.images):
        raise UserError(
            f"{where}: shards hold text of one direction: leave out languages and images, or train without "
            "shards"
        )
    if recipe.shards and is_trained(recipe.preset):
        raise UserError(
            f"{where}: shards have vocabularies of their own, and so has the trained preset {recipe.preset}: "
            "fine-tune it on files, without shards"
        )
    if (recipe.shards or recipe.images) and not (
        isinstance(recipe.val, list) and isinstance(recipe.test, list)
    ):
        raise UserError(
            f"{where}: shards and images are of splits that have files: name files as val and test"
        )
    if recipe.halve_after and recipe.optimizer == "noam":
        raise UserError(
            f"{where}: halve_after needs a constant learning rate: use optimizer adam or sgd, not noam"
        )


def check_languages(recipe: Recipe, several: bool):
    """Refuse a preset of several languages in a recipe of one direction, and the other way round."""
    if several != bool(recipe.languages):
        needs = "languages" if several else "source and target"
        raise UserError(f"preset {recipe.preset} needs {needs} in its recipe")


def check_same_languages(recipe: Recipe, languages: list[str]):
    """Refuse other languages than those of the trained preset that a recipe fine-tunes."""
    if recipe.languages != languages:
        raise UserError(
            f"preset {recipe.preset} has the languages {', '.join(languages)}: give the same, "
            "in this order; centre, left_out or directions choose pairs"
        )


def _paths(key: str, value) -> list[str]:
    """Return the keys that a value sets: of a table, those of its entries."""
    if not isinstance(value, dict):
        return [key]
    return [path for name, entry in value.items() for path in _paths(f"{key}.{name}", entry)]


def _toml_value(text: str):
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text
