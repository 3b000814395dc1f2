"""A recipe: everything that is chosen for an experiment, in a short TOML file.

`Recipe` declares each key once: its type and bounds, its default, what it means, when it has an effect, and
whether a resumed run may change it.
"""

import dataclasses
import math
import os
import re
import tomllib
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

import msgspec
from msgspec import Meta

from kzoo.data.memories import is_xliff
from kzoo.data.own_files import is_table
from kzoo.decoding.search_settings import GNMT, LARGEST_BEAM, LONGEST
from kzoo.errors import UserError, nearest, wrong_value
from kzoo.files import check_file_name
from kzoo.presets.builders import BUILDERS, check_arguments, reads_glyphs, reads_pictures
from kzoo.text.languages import has_two_kinds_of_i
from kzoo.training.choice import Choice, choose, languages_of

# The zoo's own recipes: in a clone; in an installation.
FOLDERS = (Path(__file__).parents[2] / "training", Path(__file__).parents[1] / "recipes")

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

# Keras's and TensorFlow's counters have 32 bits. Limits of batches fit a machine's memory.
Whole = Annotated[int, Meta(ge=0, le=10**9)]
Positive = Annotated[int, Meta(ge=1, le=10**9)]
Amount = Annotated[float, Meta(ge=0)]
Below1 = Annotated[float, Meta(ge=0, lt=1)]
HeldOut = list[str] | Positive | Annotated[float, Meta(gt=0, lt=1)]


class Use(NamedTuple):
    """When a key has an effect. Setting a key that has none is an error."""

    holds: Callable[["Recipe"], bool]
    otherwise: str


TWO_LANGUAGES = Use(lambda recipe: not recipe.languages, "a multilingual model")
SEVERAL_LANGUAGES = Use(lambda recipe: bool(recipe.languages), "a model of one direction")
NOT_DIRECTIONS = Use(lambda recipe: not recipe.directions, "directions")
NOT_SENTENCES = Use(lambda recipe: not recipe.sentences, "sentences, which sets the batch size")
NOAM = Use(lambda recipe: recipe.optimizer == "noam", "optimizer {recipe.optimizer}")
CONSTANT_RATE = Use(
    lambda recipe: recipe.optimizer != "noam", "optimizer noam, which has rate_factor instead"
)
NOT_CHARACTERS = Use(lambda recipe: not recipe.source_characters, "source_characters")
NOT_LOWERCASED = Use(lambda recipe: recipe.text != "lowercased", "lowercased text")
OWN_FILES = Use(lambda recipe: recipe.corpus == "files", 'a corpus other than "files"')
OWN_ROWS = Use(lambda recipe: not (recipe.shards or recipe.images), "shards or images, which have all rows")
TABLES = Use(lambda recipe: not recipe.train or any(map(is_table, _files(recipe))), "text files alone")
XLIFF_FILES = Use(
    lambda recipe: not recipe.train or any(map(is_xliff, _files(recipe))), "files other than XLIFF"
)
BUILDER = Use(
    lambda recipe: recipe.preset in BUILDERS, "{recipe.preset}, which is trained and has its own vocabularies"
)


def _files(recipe: "Recipe") -> Iterator[Path]:
    parts = recipe.train, recipe.val, recipe.test
    return (Path(file) for part in parts if isinstance(part, list) for file in part)


def key(default: Any, text: str, *uses: Use, may_differ: bool = False, path: bool = False):
    """Declare a key.

    Args:
        default: its value if the recipe does not set it.
        text: what it means.
        uses: when it has an effect; always by default.
        may_differ: whether a resumed run may change it, because neither steps nor validation depend on it.
        path: whether its value is a path, relative to the recipe's folder.
    """
    about = {"text": text, "uses": uses, "may_differ": may_differ, "path": path}
    if default in ([], {}):
        return field(default_factory=type(default), metadata=about)
    return field(default=default, metadata=about)


@dataclass(frozen=True)
class Recipe:
    """What to train, on which text, and how."""

    preset: str = key(
        dataclasses.MISSING,
        """a builder in `kzoo.presets`, such as `"pope_tiny"`; or a trained preset to fine-tune, as
        `kzoo.presets.load` takes it (a folder beside the recipe: `"./tuned"`). It keeps its vocabularies; the
        optimizer state is reset.""",
    )
    corpus: str = key(
        dataclasses.MISSING, """a corpus's name; or `"files"`, with `train`, `val` and `test`."""
    )
    source: str = key("", "source language of a model of one direction.", TWO_LANGUAGES)
    target: str = key("", "target language of a model of one direction.", TWO_LANGUAGES)
    languages: list[str] = key([], "languages of a multilingual model, instead of `source` and `target`.")
    centre: str = key(
        "",
        "multilingual: train only directions from and to this language; empty: all directions.",
        SEVERAL_LANGUAGES,
        NOT_DIRECTIONS,
    )
    left_out: str = key(
        "",
        """multilingual: two languages, such as `"de-fr"`, to leave out in both directions.""",
        SEVERAL_LANGUAGES,
        NOT_DIRECTIONS,
    )
    # Without effect beside `directions`, but allowed: the papers' tables add `directions` to recipes with it.
    monolingual: bool = key(False, "multilingual: also pair each language with itself.", SEVERAL_LANGUAGES)
    directions: list[str] = key(
        [],
        """multilingual: the directions to train, such as `["en-de"]`, instead of those that `centre`,
        `left_out` and `monolingual` choose.""",
        SEVERAL_LANGUAGES,
    )
    pair_weights: dict = key(
        {},
        """multilingual: each direction's share of the batches, such as `{de-fr = 2, fr-de = 1}`; empty: in
        proportion to its text.""",
        SEVERAL_LANGUAGES,
    )
    batches_per_epoch: Whole = key(
        0, "multilingual: batches per epoch; 0: one pass over the text of all directions.", SEVERAL_LANGUAGES
    )
    validation_sentences: Whole = key(
        0,
        "multilingual: number of validation sentences scored in each direction after an epoch; 0: all.",
        SEVERAL_LANGUAGES,
    )
    model: dict = key(
        {},
        """arguments of the builder, such as `{num_layers = 2}`; for a trained preset, arguments of
        `kzoo.presets.load`, such as `{dropout = 0.1}`.""",
    )
    train: list[str] = key(
        [],
        """for `"files"`: text files aligned by line, one per language (`source`, `target`; or
        `languages`, in that order; to fine-tune, only those that are trained); or one table, `"my.tsv"` (or
        `.csv`), a translation memory, `"my.tmx"`, or another file that docs/data.md names.""",
        OWN_FILES,
        path=True,
    )
    val: HeldOut = key(
        [],
        """for `"files"`: files, as `train`; or the part of `train` to hold out: a number of rows or, below 1,
        a share; no sentence is then in two splits.""",
        OWN_FILES,
        path=True,
    )
    test: HeldOut = key(
        [],
        'for `"files"`: as `val`. Additional files are additional references.',
        OWN_FILES,
        may_differ=True,
        path=True,
    )
    columns: list[Positive | str] = key(
        [],
        """for `"files"`: the columns to read, if tables have more than needed: numbers from 1, or names from
        the first line, in the order of the languages.""",
        OWN_FILES,
        TABLES,
    )
    clean: bool | Literal["report"] = key(
        "report",
        """for `"files"`: `"report"`: before training, a table shows the odd rows of `train`: copies, empty or
        equal sides, odd lengths, another script, sentences of `val` or `test`; `true`: all but the last two
        kinds are also left out, and rows are held out of the rest; `false`: no table.""",
        OWN_FILES,
        OWN_ROWS,
    )
    capitals: Below1 = key(
        0.0,
        """share of the training rows that are added in capitals and again in title case, so that the model
        translates such text.""",
        NOT_LOWERCASED,
    )
    approved: bool = key(
        False, "for XLIFF files: only translations that are approved are read.", OWN_FILES, XLIFF_FILES
    )
    shards: str = key(
        "",
        """folder written by `kzoo prepare`, for a training text too large for memory; empty: read the text
        itself.""",
        TWO_LANGUAGES,
        BUILDER,
        may_differ=True,  # a digest detects shards of other text
        path=True,
    )
    images: str = key(
        "",
        "for a model that reads images: folder with features `SPLIT.npy`; empty: the corpus's own images.",
        TWO_LANGUAGES,
        may_differ=True,
        path=True,
    )
    validation: str = key("val", "split that chooses the best checkpoint.")
    text: Literal["raw", "lowercased", "truecased"] = key(
        "raw",
        """form of the text that is split into subwords: `"raw"`; or, normalized and tokenized by Moses,
        `"lowercased"` or `"truecased"`. Translations are plain text; with `"lowercased"`, in lower case.""",
        BUILDER,
    )
    vocabulary_size: Annotated[int, Meta(ge=5)] = key(
        8000,
        "number of subwords: with `joint_vocabulary`, shared by both languages; else per language.",
        BUILDER,
    )
    joint_vocabulary: bool = key(
        True, "one vocabulary for both languages.", TWO_LANGUAGES, NOT_CHARACTERS, BUILDER
    )
    source_characters: Literal["", "seen", "common"] = key(
        "",
        """`"seen"`: source tokens are the characters of the training text; `"common"`: these and the other
        common Chinese characters, for a model that reads glyphs. `vocabulary_size` then applies
        to the target only.""",
        TWO_LANGUAGES,
        BUILDER,
    )
    language_model_epochs: Whole = key(
        0,
        "epochs of training a recurrent decoder on the target alone, before the translator.",
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
        """what happens to sentences longer than the model's `max_length` or `tokens`: `"error"`: training
        does not start; `"truncate"`: they are cut; `"drop"`: their pairs are left out.""",
    )
    epochs: Positive = key(40, "maximum number of epochs; a resumed run may raise it.", may_differ=True)
    steps: Whole = key(0, "maximum number of weight updates; 0: no limit.")
    minutes: Amount = key(
        0.0,
        """minutes in which the run ends, its preset written; it needs a `cooldown`; 0: any. A resumed run may
        raise them, and then continues from before the cooldown.""",
        may_differ=True,
    )
    cooldown: Below1 = key(
        0.0,
        """part of the run, at its end, in which the learning rate falls to zero; 0: it does not. Validation
        then takes at most a tenth of the time, and when patience runs out, the rate falls before the end.""",
    )
    patience: Whole = key(
        0, "stop training after this many epochs without a better validation BLEU; 0: never."
    )
    optimizer: Literal["noam", "adam", "sgd"] = key(
        "noam", """`"noam"`: Adam with Noam's schedule; `"adam"` or `"sgd"`: with a constant rate."""
    )
    rate: Amount = key(1e-3, "constant learning rate.", CONSTANT_RATE)
    halve_after: Whole = key(
        0,
        "epochs at the constant rate; then it is halved every epoch, down to 1e-5; 0: never halved.",
        CONSTANT_RATE,
    )
    warmup_steps: Positive = key(4000, "warm-up steps of Noam's schedule.", NOAM)
    rate_factor: Amount = key(1.0, "factor by which Noam's learning rate is multiplied.", NOAM)
    beta_2: Below1 = key(0.98, "Adam's β₂ with Noam's schedule; at least 0 and less than 1.", NOAM)
    label_smoothing: Below1 = key(0.1, "label smoothing of the loss; at least 0 and less than 1.")
    consistency: Amount = key(
        0.0,
        """α of R-Drop (`ConsistentCrossEntropy`): the model reads each sentence pair twice, with different
        dropout, and its predictions should agree; 0: it reads each pair once.""",
        TWO_LANGUAGES,
    )
    clip_norm: Amount = key(0.0, "maximum norm of all gradients together; 0: no clipping.")
    accumulate: Positive = key(
        1,
        """batches per weight update (one of `steps`), which uses their mean gradient: for large batches in
        little memory.""",
    )
    precision: Literal["float32", "mixed_bfloat16", "mixed_float16"] = key("float32", "Keras dtype policy.")
    average: Positive = key(1, "number of best checkpoints that are averaged into the final weights.")
    checkpoint_minutes: Amount = key(
        10.0,
        """minutes of training between checkpoints within an epoch: the most that a killed run loses; 0: save
        only after epochs.""",
        may_differ=True,
    )
    seed: Annotated[int, Meta(ge=0, lt=2**32)] = key(
        1, "seed of the initial weights, dropout and the order of batches."
    )
    beam_size: Annotated[int, Meta(ge=1, le=LARGEST_BEAM)] | None = key(
        None,
        """beam size with which the trained preset translates; by default the fine-tuned preset's, else 5.
        Validation is greedy.""",
        may_differ=True,
    )
    length_penalty: float | None = key(
        None, "α of its score log P / length^α; by default the fine-tuned preset's, else 1.", may_differ=True
    )
    gnmt: Amount | None = key(
        None, "α of GNMT's length penalty, instead of `length_penalty`.", may_differ=True
    )
    max_length: Annotated[int, Meta(ge=1, le=LONGEST)] | None = key(
        None,
        """maximum length of its translations in tokens, end symbol included; by default the fine-tuned
        preset's, else 1.5 × the padded source's + 8. Validation has it, too. The model's own limit is
        `model.max_length`.""",
    )

    @property
    def truncate(self) -> bool:
        """Whether to cut sentences that are too long."""
        return self.too_long == "truncate"

    def search_settings(self) -> dict:
        """Return the trained preset's search settings; `None` for those that the recipe does not set."""
        penalty = self.length_penalty if self.gnmt is None else GNMT(self.gnmt)
        return {"beam_size": self.beam_size, "length_penalty": penalty, "max_length": self.max_length}


KEYS = {declared.name: declared for declared in dataclasses.fields(Recipe)}
Recipe.__doc__ += "\n\nArgs:\n" + "\n".join(
    f"    {name}: {' '.join(declared.metadata['text'].split())}" for name, declared in KEYS.items()
)


def read_recipe(path: str | Path, overrides: list[str] = ()) -> Recipe:
    """Read a recipe. For the user's own text, what it leaves out is chosen by the text (`choose`).

    Paths in the file are relative to its folder. Paths in overrides are relative to the current folder.

    Args:
        path: TOML file with the keys of `Recipe`, or the name of one of the zoo's recipes.
        overrides: each `"KEY=VALUE"`, with VALUE in TOML (`epochs=3`, `model.num_layers=2`). Strings need no
            quotes.

    Raises:
        UserError: no such file or name, invalid TOML, an unknown or missing key, a value of the wrong type,
            or a value that would change nothing.

    Example:

    >>> read_recipe("pope_multi30k", ["epochs=3"]).epochs
    3
    """
    values = read_values(path, overrides)
    return completed(values, choose(values), str(path))


def completed(given: dict[str, Any], chosen: Mapping[str, Choice], where: str) -> Recipe:
    """Return the recipe of the given and the chosen values, checked. Errors name it as `where`."""
    return _checked({key: choice.value for key, choice in chosen.items()} | given, where)


def text_values(
    files: Sequence[str], source: str | None, target: str | None, overrides: Sequence[str] = ()
) -> dict[str, Any]:
    """Return the values of a recipe for the user's own text files, or one table.

    Args:
        files: as a recipe's `train`.
        source, target: languages; `None`: those that the files' endings name.
        overrides: as in `read_recipe`.

    Raises:
        UserError: the files do not name the languages, or an override is not `KEY=VALUE`.
    """
    languages, values = [source, target] if source and target else languages_of(files), {"train": list(files)}
    if len(files) > 2:
        values["languages"] = languages
    else:
        values |= {"source": languages[0], "target": languages[-1]}
    for override in overrides:
        _override(values, override)
    return _plausible(values, "your own text")


def read_values(path: str | Path, overrides: Sequence[str] = ()) -> dict[str, Any]:
    """Return the values that a recipe gives; arguments and errors as in `read_recipe`."""
    check_file_name(path)
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
        _override(values, override)
    return _plausible(values, str(path))


def _plausible(values: dict[str, Any], where: str) -> dict[str, Any]:
    """Return the values, checked before the text is read, which chooses further ones."""
    later = {"preset": "", "corpus": ""}
    if values.get("minutes"):
        later["cooldown"] = 0.2
    make_recipe(later | values, where)
    return values


def recipe_file(recipe: str | Path) -> Path:
    """Return the path of a recipe: a file, or one of the zoo's recipes by its name, such as "pope_multi30k".

    Raises:
        UserError: no recipe has that name.
    """
    path = Path(recipe)
    if path.suffix or len(path.parts) != 1 or path.is_file():  # a run's folder may have a recipe's name
        return path
    found = {
        path.stem: path for folder in FOLDERS for path in folder.glob("*/*.toml") if path.stem != "paper"
    }
    if path.name not in found:
        raise UserError(f"no recipe {path.name}; {nearest(path.name, found)}; your own ends with .toml")
    return found[path.name]


def _from_folder(folder: Path, name: str, value):
    """Return a key's value, with its paths resolved from `folder`.

    A preset with a slash is a path, unless it is a handle.
    """
    if isinstance(value, list):
        return [_from_folder(folder, name, item) for item in value]
    if name == "model" and isinstance(value, dict) and isinstance(value.get("font"), str):
        return {**value, "font": os.path.normpath(folder / os.path.expanduser(value["font"]))}
    if not (isinstance(value, str) and value and name in KEYS):
        return value
    is_path = KEYS[name].metadata["path"]
    if name == "preset":
        is_path = bool(os.path.dirname(value)) and "://" not in value
    if not is_path:
        return value
    path = os.path.normpath(folder / os.path.expanduser(value))
    # A single name would be a builder's.
    return os.path.join(".", path) if name == "preset" and not os.path.dirname(path) else path


def _override(values: dict, override: str):
    """Set the key of `KEY=VALUE` to its value."""
    name, separator, text = override.partition("=")
    if not separator:
        raise UserError(f"{override!r} is not KEY=VALUE, as in epochs=3")
    try:
        value = tomllib.loads(f"value = {text.strip()}")["value"]
    except tomllib.TOMLDecodeError:
        value = text.strip()
    *tables, last = name.strip().split(".")
    if not tables and last in KEYS and KEYS[last].type is str and not isinstance(value, str):
        value = text.strip()  # the language nan, the folder 2024
    for table in tables:
        values = values.setdefault(table, {})
        if not isinstance(values, dict):
            raise UserError(f"{override!r}: {table} is a value, not a table")
    values[last] = value


def check_recipe(recipe: Recipe) -> Recipe:
    """Check a recipe made in Python, and return it as `read_recipe` would: with lists instead of tuples.

    Raises:
        UserError: as `read_recipe`.
    """
    return _checked(dataclasses.asdict(recipe), "the recipe")


def _checked(values: dict, where: str) -> Recipe:
    recipe = make_recipe(values, where)
    _check_has_effect(recipe, where)
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
        raise UserError(f"{where} lacks {', '.join(missing)}")
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
        raise UserError(f"{where} needs source and target, or languages for a multilingual model")
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


def _check_has_effect(recipe: Recipe, where: str):
    """Raise `UserError` for values that have no effect, unless they are the default."""
    defaults = vars(Recipe(recipe.preset, recipe.corpus))
    changed = [declared for name, declared in KEYS.items() if getattr(recipe, name) != defaults[name]]
    for use in dict.fromkeys(use for declared in changed for use in declared.metadata["uses"]):
        if use.holds(recipe):
            continue
        names = ", ".join(declared.name for declared in changed if use in declared.metadata["uses"])
        otherwise = use.otherwise.format(recipe=recipe)
        near = nearest(recipe.preset, list(BUILDERS)) if use is BUILDER else ""  # a misspelt builder?
        known = f" (among builders: {near})" if near.startswith("did you mean") else ""
        raise UserError(
            f"{where}: {names} would change nothing with {otherwise}{known}: remove it, or keep its default"
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
    check_arguments(recipe.preset, recipe.model)


def check_model(recipe: Recipe, languages: list[str] | None, pictures: bool, recurrent: bool):
    """Check that a recipe fits its model.

    Args:
        recipe: the recipe.
        languages: the languages of a multilingual model; `None`: a model of one direction.
        pictures: whether the model reads images.
        recurrent: whether it has a recurrent decoder.

    Raises:
        UserError: it does not.
    """
    several, name = languages is not None, recipe.preset
    if several != bool(recipe.languages):
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
    if recipe.shards and pictures:
        raise UserError(f"{name} reads images, but shards have none: remove shards from the recipe")


def shard_settings(recipe: Recipe) -> dict:
    """Return the keys and values of the recipe that its shards depend on.

    Raises:
        UserError: shards cannot have the recipe's form of text.
    """
    if recipe.text != "raw":
        raise UserError(f"shards hold raw text, but the recipe's is {recipe.text}: remove text or shards")
    names = ("source", "target", "vocabulary_size", "joint_vocabulary", "source_characters", "capitals")
    return {name: getattr(recipe, name) for name in names}
