"""A recipe: everything that is chosen for an experiment, in a short TOML file.

`Recipe` declares each key once: its type and bounds, its default, what it means, when it has an effect, and
whether a resumed run may change it.
"""

import dataclasses
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta

from kzoo.data.own_files import is_table
from kzoo.data.parallel_files import has_columns, is_xliff
from kzoo.decoding.search_settings import GNMT, LARGEST_BEAM, LONGEST
from kzoo.errors import UserError
from kzoo.presets.builders import BUILDERS

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
TABLES = Use(
    lambda recipe: not recipe.train or any(is_table(file) and has_columns(file) for file in _files(recipe)),
    "files without columns",
)
XLIFF_FILES = Use(
    lambda recipe: not recipe.train or any(map(is_xliff, _files(recipe))), "files other than XLIFF"
)
BUILDER = Use(
    lambda recipe: recipe.preset in BUILDERS, "{recipe.preset}, which is trained and has its own vocabularies"
)
TRAINED = Use(lambda recipe: recipe.preset not in BUILDERS, "{recipe.preset}, which is not trained yet")


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
    lora: Annotated[int, Meta(ge=0, le=10**4)] = key(
        0,
        """rank of the factors that are added to a trained preset's dense layers (LoRA); only these and the
        layers' biases are trained, in less memory; 0: all weights are trained.""",
        TRAINED,
    )
    freeze: list[str] = key(
        [],
        """layers of a trained preset that keep their weights, by name, such as `["embedding",
        "encoder_layer_*"]`.""",
        TRAINED,
    )
    train: list[str] = key(
        [],
        """for `"files"`: text files aligned by line, one per language (`source`, `target`; or
        `languages`, in that order; to fine-tune, only those that are trained); or tables, `"my.tsv"` (or
        `.csv`), translation memories, `"my.tmx"`, and other files that docs/data.md names, read one after the
        other.""",
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
    monolingual_target: list[str] = key(
        [],
        """for `"files"`: text files of further sentences in the target language. A model of the other
        direction is trained first, in a quarter of `minutes` if these are set; its translations of these
        sentences, marked by a tag, are added to the training text.""",
        OWN_FILES,
        TWO_LANGUAGES,
        OWN_ROWS,
        NOT_CHARACTERS,
        BUILDER,
        path=True,
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
        """minutes in which the run ends, its preset written; 0: any. A recipe's file that gives no `cooldown`
        then has one of 0.2. A resumed run may raise them, and then continues from before the cooldown.""",
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
    bpe_dropout: Below1 = key(
        0.0,
        """probability with which merges of subwords are left out, so that the training text has other, and
        more, subwords in each epoch (BPE-dropout; about a tenth of the words keep their usual ones, for want
        of room); 0: always the usual ones.""",
        BUILDER,
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


def shard_settings(recipe: Recipe) -> dict:
    """Return the keys and values of the recipe that its shards depend on.

    Raises:
        UserError: shards cannot have the recipe's form of text.
    """
    if recipe.text != "raw":
        raise UserError(f"shards hold raw text, but the recipe's is {recipe.text}: remove text or shards")
    names = ("source", "target", "vocabulary_size", "joint_vocabulary", "source_characters", "capitals")
    return {name: getattr(recipe, name) for name in names}
