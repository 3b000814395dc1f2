"""A recipe: everything that an experiment's result depends on, read from a short TOML file.

`Recipe` declares each key once: type and bounds, default, meaning, when it has an effect, whether a resumed
run may change it.
"""

import dataclasses
import math
import os
import re
import tomllib
import typing
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from kzoo.decoding.search_settings import GNMT
from kzoo.errors import UserError, nearest
from kzoo.presets.shelf import MODULES, builder_module, is_builder

# The zoo's own recipes: in a clone; in an installation.
FOLDERS = (Path(__file__).parents[2] / "training", Path(__file__).parents[1] / "recipes")

# Up to what Keras's and TensorFlow's 32-bit counters hold; batches, up to what could be in memory.
Whole = Annotated[int, Meta(ge=0, le=10**9)]
Positive = Annotated[int, Meta(ge=1, le=10**9)]
Amount = Annotated[float, Meta(ge=0)]
Below1 = Annotated[float, Meta(ge=0, lt=1)]
HeldOut = list[str] | Positive | Annotated[float, Meta(gt=0, lt=1)]


class Use(NamedTuple):
    """When keys have an effect; a value of theirs that would change nothing is refused."""

    holds: Callable[["Recipe"], bool]
    otherwise: str


TWO_LANGUAGES = Use(lambda recipe: not recipe.languages, "a multilingual model")
SEVERAL_LANGUAGES = Use(lambda recipe: bool(recipe.languages), "a model of one direction")
NOT_DIRECTIONS = Use(lambda recipe: not recipe.directions, "directions")
NOT_SENTENCES = Use(lambda recipe: not recipe.sentences, "sentences, which is the batches' size")
NOAM = Use(lambda recipe: recipe.optimizer == "noam", "optimizer {recipe.optimizer}")
CONSTANT_RATE = Use(
    lambda recipe: recipe.optimizer != "noam",
    "optimizer noam, whose rate is rate_factor's; adam or sgd has one",
)
NOT_CHARACTERS = Use(lambda recipe: not recipe.source_characters, "source_characters")
OWN_FILES = Use(lambda recipe: recipe.corpus == "files", 'another corpus than "files"')
BUILDER = Use(
    lambda recipe: is_builder(recipe.preset), "{recipe.preset}, which is trained and has its vocabularies"
)


def key(default: Any, text: str, *uses: Use, may_differ: bool = False, path: bool = False):
    """Declare a key.

    Args:
        default: its value in a recipe without it.
        text: what it means.
        uses: when it has an effect; always by default.
        may_differ: whether a resumed run may change it, as it changes no training step.
        path: whether it holds paths, which are relative to the recipe's folder.
    """
    about = {"text": text, "uses": uses, "may_differ": may_differ, "path": path}
    if default in ([], {}):
        return field(default_factory=type(default), metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Recipe:
    """What is trained, on what, and how."""

    preset: str = key(
        dataclasses.MISSING,
        """builder in `kzoo.presets`, such as `"pope_tiny"`; or a trained preset, as `kzoo.presets.load` takes
        it, which is fine-tuned: it keeps its vocabularies, and the optimizer starts anew.""",
    )
    corpus: str = key(
        dataclasses.MISSING, """name of a corpus; or `"files"`, with `train`, `val` and `test`."""
    )
    source: str = key("", "language that a model of one direction translates from.", TWO_LANGUAGES)
    target: str = key("", "language that it translates to.", TWO_LANGUAGES)
    languages: list[str] = key([], "languages of a multilingual model, instead of `source` and `target`.")
    centre: str = key(
        "",
        "multilingual: only pairs with this language; empty: all pairs.",
        SEVERAL_LANGUAGES,
        NOT_DIRECTIONS,
    )
    left_out: str = key(
        "",
        """multilingual: two languages, such as `"de-fr"`, left out in both directions.""",
        SEVERAL_LANGUAGES,
        NOT_DIRECTIONS,
    )
    # Has an effect on directions: none, but recipes that directions narrow have it.
    monolingual: bool = key(False, "multilingual: also pair each language with itself.", SEVERAL_LANGUAGES)
    directions: list[str] = key(
        [],
        """multilingual: such as `["en-de"]`, instead of those that `centre`, `left_out` and `monolingual`
        choose.""",
        SEVERAL_LANGUAGES,
    )
    pair_weights: dict = key(
        {},
        """multilingual: each pair's share of the batches, by a name such as `"de-fr"`; empty: the pairs take
        turns, each with batches in proportion to its text.""",
        SEVERAL_LANGUAGES,
    )
    batches_per_epoch: Whole = key(
        0, "multilingual: batches between validations; 0: one pass over all pairs.", SEVERAL_LANGUAGES
    )
    validation_sentences: Whole = key(
        0,
        """multilingual: number of sentences of the validation split that are scored in each direction after
        an epoch; 0: all.""",
        SEVERAL_LANGUAGES,
    )
    model: dict = key(
        {},
        """arguments given to the builder, such as `{"num_layers": 2}`; or, for a trained preset, to
        `kzoo.presets.load`, such as `{"dropout": 0.1}`.""",
    )
    train: list[str] = key(
        [],
        """for `"files"`: aligned text files, one per language (`source`, `target`; or those of `languages`
        that are trained, in that order), or one table, `"my.tsv"` (or `.csv`).""",
        OWN_FILES,
        path=True,
    )
    val: HeldOut = key(
        [],
        """for `"files"`: as `train`; or a number: how many rows of `train` it takes or, below 1, which share,
        so that no sentence stands in two splits.""",
        OWN_FILES,
        path=True,
    )
    test: HeldOut = key(
        [],
        'for `"files"`: as `val`; more files are further references.',
        OWN_FILES,
        may_differ=True,
        path=True,
    )
    columns: list[Positive | str] = key(
        [],
        """for `"files"`: the columns of tables that have more: numbers from 1, or names in their first line,
        in the order of the languages.""",
        OWN_FILES,
    )
    shards: str = key(
        "",
        """folder that `kzoo prepare` has made of a training text too large for memory; empty: the text itself
        is read.""",
        TWO_LANGUAGES,
        BUILDER,
        may_differ=True,  # others than those that the run began with show in their digest
        path=True,
    )
    images: str = key(
        "",
        "for a model that reads images: folder with features `SPLIT.npy`; empty: the corpus's own.",
        TWO_LANGUAGES,
        may_differ=True,
        path=True,
    )
    validation: str = key("val", "split that chooses the best checkpoint.")
    text: Literal["raw", "lowercased", "truecased"] = key(
        "raw",
        """what subwords are made from: `"raw"` text; or text that is Moses-normalized and tokenized, then
        `"lowercased"` or `"truecased"`. Translations are plain text; with `"lowercased"`, in lower case.""",
        BUILDER,
    )
    vocabulary_size: Annotated[int, Meta(ge=5)] = key(
        8000,
        "number of subwords: of both languages together with `joint_vocabulary`, else of each.",
        BUILDER,
    )
    joint_vocabulary: bool = key(
        True, "one vocabulary for both languages.", TWO_LANGUAGES, NOT_CHARACTERS, BUILDER
    )
    source_characters: Literal["", "seen", "common"] = key(
        "",
        """`"seen"`: the source's tokens are characters, those of the training text; `"common"`: these and the
        other common Chinese ones, for a model that reads glyphs. With either, `vocabulary_size` is the
        target's only.""",
        TWO_LANGUAGES,
        BUILDER,
    )
    language_model_epochs: Whole = key(
        0,
        "epochs in which a recurrent decoder is first trained on the target alone.",
        TWO_LANGUAGES,
        BUILDER,
    )
    tokens: Annotated[int, Meta(ge=2, le=10**7)] = key(
        2048, "maximum tokens per batch on either side, padding included.", NOT_SENTENCES
    )
    sentences: Annotated[int, Meta(ge=0, le=10**6)] = key(
        0, "multilingual: rows per batch, instead of `tokens`; 0: use `tokens`.", SEVERAL_LANGUAGES
    )
    num_shapes: Positive = key(7, "maximum number of batch shapes.")
    too_long: Literal["error", "truncate", "drop"] = key(
        "error",
        """what becomes of pairs of which a sentence is longer than the model's `max_length` or `tokens`:
        `"error"`; `"truncate"`, it is cut; `"drop"`, the pair is left out.""",
    )
    epochs: Positive = key(40, "maximum number of epochs; a resumed run may raise it.", may_differ=True)
    steps: Whole = key(0, "maximum number of weight updates; 0: no limit.")
    patience: Whole = key(
        0, "epochs without a better validation BLEU before training stops; 0: it never stops."
    )
    optimizer: Literal["noam", "adam", "sgd"] = key(
        "noam", """`"noam"`, Adam on Noam's schedule; `"adam"` or `"sgd"` at a constant rate."""
    )
    rate: Amount = key(1e-3, "constant learning rate.", CONSTANT_RATE)
    halve_after: Whole = key(
        0,
        """epochs at the constant rate, which is then halved every epoch, down to 1e-5; 0: it is never
        halved.""",
        CONSTANT_RATE,
    )
    warmup_steps: Positive = key(4000, "of Noam's schedule.", NOAM)
    rate_factor: Amount = key(1.0, "of Noam's schedule.", NOAM)
    beta_2: Below1 = key(0.98, "of Adam with Noam's schedule; at least 0 and less than 1.", NOAM)
    label_smoothing: Below1 = key(0.1, "at least 0 and less than 1.")
    consistency: Amount = key(
        0.0,
        """α of R-Drop (`ConsistentCrossEntropy`): each sentence pair is read twice, with different dropout,
        and the predictions should agree; 0: once.""",
        TWO_LANGUAGES,
    )
    clip_norm: Amount = key(0.0, "maximum norm of all gradients together; 0: no clipping.")
    accumulate: Positive = key(
        1,
        """batches per weight update, which uses their mean gradient and counts as one of `steps`: for large
        batches in little memory.""",
    )
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = key("float32", "Keras dtype policy.")
    average: Positive = key(1, "number of best checkpoints whose mean is the final weights.")
    checkpoint_minutes: Amount = key(
        10.0,
        """minutes of training between checkpoints within an epoch, in addition to the one after each epoch:
        the most that a killed run loses; 0: only after epochs.""",
        may_differ=True,
    )
    checkpoints_kept: Positive = key(
        3, "number of latest checkpoints kept in addition to the best.", may_differ=True
    )
    seed: Annotated[int, Meta(ge=0, lt=2**32)] = key(1, "fixes weights, dropout and the order of batches.")
    beam_size: Positive | None = key(
        None,
        """of the search that the trained preset carries; that of the preset that is fine-tuned by default,
        else 5. Validation is greedy.""",
        may_differ=True,
    )
    length_penalty: float | None = key(
        None, "α of that search's log P / length^α; by default as `beam_size`, else 1.", may_differ=True
    )
    gnmt: Amount | None = key(
        None, "α of GNMT's length penalty in that search, instead of `length_penalty`.", may_differ=True
    )
    max_length: Positive | None = key(
        None,
        """of that search: maximum length of a translation in tokens, end symbol included; 1.5 × the source's
        + 8 by default. The model's own is `model.max_length`.""",
        may_differ=True,
    )

    @property
    def truncate(self) -> bool:
        """Whether sentences that are too long are cut."""
        return self.too_long == "truncate"

    def search_settings(self) -> dict:
        """Return the settings of the trained preset's search that the recipe gives."""
        penalty = self.length_penalty if self.gnmt is None else GNMT(self.gnmt)
        return {"beam_size": self.beam_size, "length_penalty": penalty, "max_length": self.max_length}


KEYS = {one.name: one for one in dataclasses.fields(Recipe)}
Recipe.__doc__ += "\n\nArgs:\n" + "\n".join(
    f"    {name}: {' '.join(one.metadata['text'].split())}" for name, one in KEYS.items()
)


def read_recipe(path: str | Path, overrides: list[str] = (), fixed: tuple[str, ...] = ()) -> Recipe:
    """Read a recipe.

    Paths in the file are relative to its folder, those in overrides to the current one.

    Args:
        path: TOML file with the keys of `Recipe`, or the name of one of the zoo's recipes.
        overrides: each `"KEY=VALUE"`, with VALUE in TOML (`epochs=3`, `model.num_layers=2`); quotes around a
            string may be left out.
        fixed: keys, such as `"seed"` or `"model.bridge"`, that overrides may not change, because the caller
            sets them.

    Raises:
        UserError: no such file or name, invalid TOML, an unknown key, a value of the wrong type, a missing
            key, an override of a fixed key, a key that would change nothing.

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
    values = {name: _from_folder(path.parent, name, value) for name, value in values.items()}
    for override in overrides:
        _override(values, override, fixed)
    return _checked(values, str(path))


def recipe_file(recipe: str | Path) -> Path:
    """Return the path of a recipe, which may be given by the name of one of the zoo's: "pope_multi30k".

    Raises:
        UserError: no recipe has that name.
    """
    path = Path(recipe)
    if path.suffix or len(path.parts) != 1 or path.exists():
        return path
    found = {
        path.stem: path for folder in FOLDERS for path in folder.glob("*/*.toml") if path.stem != "paper"
    }
    if path.name not in found:
        raise UserError(f"no recipe {path.name}; {nearest(path.name, found)}; your own ends with .toml")
    return found[path.name]


def _from_folder(folder: Path, name: str, value):
    """Return the value of a key, with the paths in it from `folder` on.

    A preset with a slash is a path; others are names or handles.
    """
    if name == "preset" and isinstance(value, str):
        return _path(folder, value) if "/" in value and "://" not in value else value
    if name not in KEYS or not KEYS[name].metadata["path"]:
        return value
    if isinstance(value, list):
        return [_path(folder, item) for item in value]
    return _path(folder, value)


def _path(folder: Path, value):
    return os.path.normpath(folder / Path(value).expanduser()) if value and isinstance(value, str) else value


def _override(values: dict, override: str, fixed: tuple[str, ...]):
    """Set the value that `KEY=VALUE` gives."""
    name, separator, text = override.partition("=")
    if not separator:
        raise UserError(f"{override!r} is not KEY=VALUE, as in epochs=3")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    for changed in _leaves(name.strip(), value):
        if any(f"{changed}.".startswith(f"{one}.") for one in fixed):
            raise UserError(
                f"{override!r}: {changed} is set by this script and cannot be overridden; see --help"
            )
    *tables, last = name.strip().split(".")
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise UserError(f"{override!r}: {table} is a value, not a table")
    values[last] = value


def _leaves(name: str, value) -> list[str]:
    """Return the keys that a value sets: of a table, those of its entries."""
    if not isinstance(value, dict):
        return [name]
    return [leaf for inner, entry in value.items() for leaf in _leaves(f"{name}.{inner}", entry)]


def check_recipe(recipe: Recipe) -> Recipe:
    """Return a recipe that may have been made in Python as if it had been read: checked, tuples as lists.

    Raises:
        UserError: as `read_recipe`.
    """
    return _checked(dataclasses.asdict(recipe), "the recipe")


def _checked(values: dict, where: str) -> Recipe:
    recipe = make_recipe(values, where)
    _check_has_effect(recipe, where)
    if is_builder(recipe.preset):
        check_languages(recipe, builder_module(recipe.preset) == "attention_bridge")
    return recipe


def make_recipe(values: dict, where: str = "the recipe") -> Recipe:
    """Return the recipe with these values, checked.

    Raises:
        UserError: an unknown key, a value of the wrong type, a missing key.
    """
    if isinstance(values.get("truncate"), bool):  # in runs of before `too_long`
        others = {name: value for name, value in values.items() if name != "truncate"}
        values = {"too_long": "truncate" if values["truncate"] else "error", **others}
    for name in {"train", "val", "test"} & values.keys():
        if isinstance(values[name], str):  # one table
            values = {**values, name: [values[name]]}
    for name, value in values.items():
        if name not in KEYS:
            raise UserError(
                f"{where} has an unknown key {name!r} (one of the model's would be model.{name}); "
                f"{nearest(name, list(KEYS))}"
            )
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{where}: {name} is {value!r}, not a finite number")
    if missing := [name for name in ("preset", "corpus") if name not in values]:  # all others have defaults
        raise UserError(f"{where} lacks {', '.join(missing)}")
    try:
        recipe = msgspec.convert(values, Recipe)
    except msgspec.ValidationError as error:
        raise UserError(f"{where}: {_fault(values, str(error))}") from None
    _check_together(recipe, where)
    return recipe


def _fault(values: dict, error: str) -> str:
    """Return what is wrong with a value, by msgspec's error: "Expected `int` >= 1 - at `$.epochs`"."""
    expected, name = re.fullmatch(r"(.*) - at `\$\.(\w+).*", error).groups()
    if choices := typing.get_args(KEYS[name].type) * expected.startswith("Invalid enum value"):
        return f"{name} is {values[name]!r}, not one of {', '.join(choices)}"
    expected = expected.split(", got ")[0].replace("`object`", "`table`").replace("array", "list")
    return f"{name} is {values[name]!r}: {expected[0].lower()}{expected[1:]}"


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
    if recipe.length_penalty is not None and recipe.gnmt is not None:
        raise UserError(f"{where}: length_penalty and gnmt exclude each other: keep one of them")
    if recipe.shards and recipe.images:
        raise UserError(f"{where}: shards hold text: leave out images, or train without shards")
    own_splits = not (isinstance(recipe.val, list) and isinstance(recipe.test, list))
    if own_splits and (recipe.shards or recipe.images):
        raise UserError(
            f"{where}: shards and images are of splits that have files: name files as val and test"
        )


def _check_has_effect(recipe: Recipe, where: str):
    """Refuse a key whose value is not its default and would change nothing."""
    defaults = vars(Recipe(recipe.preset, recipe.corpus))
    changed = [one for name, one in KEYS.items() if getattr(recipe, name) != defaults[name]]
    for use in dict.fromkeys(use for one in changed for use in one.metadata["uses"]):
        if use.holds(recipe):
            continue
        names = ", ".join(one.name for one in changed if use in one.metadata["uses"])
        otherwise = use.otherwise.format(recipe=recipe)
        near = nearest(recipe.preset, list(MODULES)) if use is BUILDER else ""  # it may be misspelt
        known = f" (or, for a builder: {near})" if near.startswith("did you mean") else ""
        raise UserError(
            f"{where}: {names} would change nothing with {otherwise}{known}: leave it out, or at its default"
        )


def check_languages(recipe: Recipe, several: bool):
    """Refuse a preset of several languages in a recipe of one direction, and the other way round."""
    if several != bool(recipe.languages):
        needs = "languages" if several else "source and target"
        raise UserError(f"preset {recipe.preset} needs {needs} in its recipe")
