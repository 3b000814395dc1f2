"""What a run trains and how it is scored, and the task that prepares it from a recipe and its text."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.data import Batches, Corpus, FeatureFile, PairBatches, ShardedBatches
from kzoo.data.batches import sample_of
from kzoo.data.wrapped_batches import ResegmentedBatches
from kzoo.presets.builders import BUILDERS
from kzoo.text import SubwordTokenizer
from kzoo.text.bpe_dropout import BPEDropout
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import UnknownCharacters
from kzoo.training.optimizer import make_optimizer
from kzoo.training.recipe import Recipe
from kzoo.training.starting_preset import copy_start, load_start
from kzoo.training.trained_rows import ROWS, record_rows
from kzoo.training.vocabularies import print_rare_subwords, unknown_by_language


class Validation(NamedTuple):
    """The validation split as it is scored, without the rows that are left out.

    Attributes:
        texts: each language's sentences.
        readings: each direction's sources as the translator reads them.
        tokens: the token ids of each language's sentences.
        images: one for each row; `None`: text alone.
    """

    texts: Sequence[list[str]]
    readings: dict[tuple[str, str], list[Reading]]
    tokens: Sequence[list[list[int]]]
    images: np.ndarray | FeatureFile | None = None


@dataclasses.dataclass(frozen=True)
class PreparedRun:
    """What a run trains and how it is scored. A task makes it once, and nothing changes it afterwards.

    Attributes:
        translator: compiled.
        batches: the training batches.
        scorer: the callback that scores the translator on the validation split after each epoch; its
            `low_scores` go into the trained preset.
        digest: SHA-256 of the training and validation data.
        unknown: for each language, the characters of the training text that its vocabulary lacks.
        validation: batches of the validation split, for a recipe that trains a language model; else `None`.
        loss_unit: what the loss is a mean over.
    """

    translator: keras.Model
    batches: Batches | ShardedBatches | PairBatches | ResegmentedBatches
    scorer: keras.callbacks.Callback
    digest: str
    unknown: dict[str, UnknownCharacters] = dataclasses.field(default_factory=dict)
    validation: Batches | None = None
    loss_unit: str = "token"


@dataclasses.dataclass(frozen=True)
class Task:
    """Prepares what a run trains, for a recipe of one direction or of several.

    Attributes:
        recipe: what to train.
        corpus: the recipe's.
        languages: those of the text.
        sides: the training text, a list of sentences for each language; empty if it is read from shards.
        validation: the validation split, likewise.
        further: further rows of the training text, likewise, whose sources a reverse model has written.
    """

    recipe: Recipe
    corpus: Corpus | None = None
    languages: Sequence[str] = ()
    sides: Sequence[list[str]] = ([], [])
    validation: Sequence[list[str]] = ([], [])
    further: Sequence[list[str]] = ()

    @cached_property
    def texts(self) -> Sequence[list[str]]:
        """The training text with the further rows."""
        if not self.further:
            return self.sides
        return [[*side, *more] for side, more in zip(self.sides, self.further, strict=True)]

    def begin(self, folder: Path):
        """Write the vocabularies, or the preset to fine-tune, to the run's folder.

        Only the chief does. Afterwards, all workers read them there (`prepare`).
        """
        if self.recipe.preset in BUILDERS:
            self.learn(folder)
        else:
            copy_start(self.recipe, folder)

    def record_rows(self, folder: Path):
        """Write the digests of the training text's rows to the run's folder."""
        record_rows(folder / ROWS, self.sides)

    def prepare(self, folder: Path) -> PreparedRun:
        """Return what the run in a folder trains, from what `begin` wrote there.

        Raises:
            UserError: recipe, text, images and model do not fit each other.
        """
        recipe, translator = self.recipe, self.build(folder)
        train_images, images = self.images(translator)
        tokenizers, directions = zip(*self.tokenizers(translator), strict=True)
        read = self.read_validation(translator, directions, images)
        subwords = bpe_dropouts(recipe, tokenizers)
        growth = growth_of(subwords, read.tokens)
        batches, unknown = self.training_batches(translator, tokenizers, directions, train_images, growth)
        validation = None
        if recipe.language_model_epochs:
            validation = self.batches(translator, recipe.validation, read.texts, read.tokens, read.images)
        digest = data_digest(batches, read.texts, read.images)
        if recipe.bpe_dropout:
            sides = (subwords, subwords) if translator.multilingual else (subwords[:1], subwords[1:])
            batches = ResegmentedBatches(batches, *sides, recipe.seed)
        unit = "sentence" if translator.multilingual else "token"
        return PreparedRun(
            translator, batches, self.scorer(translator, read), digest, unknown, validation, unit
        )

    def images(self, translator: keras.Model) -> list:
        """Return the images of the training and of the validation text; `None` if the model reads none."""
        return [None, None]

    def training_batches(
        self,
        translator: keras.Model,
        tokenizers: Sequence[Tokenizer],
        directions: Sequence[Direction],
        images,
        growth: float,
    ) -> tuple:
        """Return the training batches, and each language's characters that its vocabulary lacks."""
        sides = [
            tokenizer(text, **translator.tokenizer_options(tokenizer, *direction))
            for tokenizer, text, direction in zip(tokenizers, self.texts, directions, strict=True)
        ]
        unknown = unknown_by_language(self.languages, tokenizers, self.texts, sides)
        print_rare_subwords(self.recipe, tokenizers, sides)
        return self.batches(translator, "train", self.texts, sides, images, growth), unknown

    def learn(self, folder: Path) -> list[Tokenizer] | dict[str, Tokenizer]:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        raise NotImplementedError

    def tokenizers(self, translator: keras.Model) -> list[tuple[Tokenizer, Direction]]:
        """Return the tokenizer of each language, and the direction for which it reads the training text."""
        raise NotImplementedError

    def read_validation(self, translator: keras.Model, directions: Sequence[Direction], images) -> Validation:
        """Return the validation split, without the rows that the recipe drops; `directions` read it."""
        raise NotImplementedError

    def batches(
        self, translator: keras.Model, split: str, texts, sides, images=None, growth: float = 1.0
    ) -> Batches | PairBatches:
        """Return the batches of a split's texts.

        Args:
            translator: the model.
            split: the name of the split.
            texts: each language's sentences.
            sides: the token ids of each language's sentences.
            images: one for each row; `None` if the model reads none, as in several directions.
            growth: as `growth_of` returns it.
        """
        raise NotImplementedError

    def scorer(self, translator: keras.Model, read: Validation) -> keras.callbacks.Callback:
        """Return the callback that scores the model on the validation split after each epoch."""
        raise NotImplementedError

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`."""
        recipe, untrained = self.recipe, self.recipe.preset in BUILDERS
        translator = self._built(self.learn(folder)) if untrained else load_start(recipe, folder)
        optimizer = make_optimizer(recipe, translator.backbone.width)
        translator.compile(optimizer=optimizer, loss=self._loss(translator))
        translator.search = translator.search.changed(**recipe.search_settings())  # `None` keeps a setting
        return translator


def bpe_dropouts(recipe: Recipe, tokenizers: Sequence[Tokenizer]) -> list[BPEDropout | None]:
    """Return what splits each tokenizer's training text into other subwords; `None`: it stays as it is."""
    return [
        BPEDropout(tokenizer.proto, recipe.bpe_dropout, recipe.seed)
        if recipe.bpe_dropout and isinstance(tokenizer, SubwordTokenizer)
        else None
        for tokenizer in tokenizers
    ]


def growth_of(subwords: Sequence[BPEDropout | None], tokens: Sequence[list[list[int]]]) -> float:
    """Return how many times as many tokens as usual the sides of a text have, on the side that grows most."""
    return max([1.0, *(one.growth(rows) for one, rows in zip(subwords, tokens, strict=True) if one)])


def data_digest(batches: keras.utils.PyDataset, validation: Sequence[list[str]], images=None) -> str:
    """Return the SHA-256 of training batches, validation text and up to 64 of its images."""
    digest = hashlib.sha256(f"{batches.digest()} {json.dumps(validation)}".encode())
    if images is not None:
        digest.update(sample_of(images))
    return digest.hexdigest()
