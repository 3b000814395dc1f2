"""From a recipe to what is trained: text, vocabularies, model, batches and validation score."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Self

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.data import Batches, Corpus, FeatureFile, PairBatches, ShardedBatches, Shards
from kzoo.data.batches import sample_of
from kzoo.data.wrapped_batches import ResegmentedBatches
from kzoo.images import image_rows
from kzoo.models import (
    ConsistentCrossEntropy,
    LabelSmoothedCrossEntropy,
    SentenceCrossEntropy,
)
from kzoo.presets import build
from kzoo.presets.builders import BUILDERS
from kzoo.text import SubwordTokenizer
from kzoo.text.bpe_dropout import BPEDropout
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import UnknownCharacters
from kzoo.training.capitals import with_capitals
from kzoo.training.corpus import recipe_corpus, recipe_directions, recipe_weights, text_languages
from kzoo.training.long_sentences import counts_of, cut_or_kept, kept_rows, print_dropped, rows_of
from kzoo.training.optimizer import make_optimizer
from kzoo.training.recipe import Recipe, shard_settings
from kzoo.training.starting_preset import copy_start, load_start
from kzoo.training.trained_rows import ROWS, copy_rows, record_rows
from kzoo.training.validation import DirectionScores, TranslationScore
from kzoo.training.vocabularies import (
    learned_subwords,
    learned_tokenizers,
    print_rare_subwords,
    unknown_by_language,
)


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


def recipe_task(recipe: Recipe, corpus: Corpus | None = None) -> "Task":
    """Return the task of a recipe, with its text: the `corpus`, which by default is opened.

    Raises:
        UserError: the text cannot be used.
    """
    kind = SeveralDirections if recipe.languages else OneDirection
    return kind.of(recipe, corpus or recipe_corpus(recipe))


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


@dataclasses.dataclass(frozen=True)
class OneDirection(Task):
    """The task of a recipe with a `source` and a `target`; its training text may be in `shards`."""

    shards: Shards | None = None

    @classmethod
    def of(cls, recipe: Recipe, corpus: Corpus) -> Self:
        """Return the task with its text. Arguments and errors are those of `recipe_task`."""
        languages, shards, sides = (recipe.source, recipe.target), None, ([], [])
        if recipe.monolingual_target:
            corpus.monolingual_target()  # it may be unusable
        if recipe.shards:
            shards = Shards(recipe.shards)
            shards.require(**shard_settings(recipe))
        else:
            sides = corpus.pairs("train", *languages)
            sides = with_capitals(sides, languages, recipe.capitals, recipe.seed)
        validation = corpus.pairs(recipe.validation, *languages)
        return cls(recipe, corpus, languages, sides, validation, shards=shards)

    @cached_property
    def pictures(self) -> list[np.ndarray | FeatureFile]:
        """The corpus's images of the training and of the validation text."""
        return [self.corpus.images(split) for split in ("train", self.recipe.validation)]

    def learn(self, folder):
        if self.shards:
            self.shards.copy_vocabularies(folder)
        return learned_tokenizers(self.recipe, folder, *self.texts)

    def record_rows(self, folder: Path):
        """Write the digests of the training text's rows to the run's folder."""
        if self.shards:
            copy_rows([self.shards.folder / ROWS], folder / ROWS)
        else:
            super().record_rows(folder)

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`, with the recipe's languages and features."""
        translator = super().build(folder)
        source, translator.target_language = translator.direction(*self.languages)
        if translator.source_language is None or translator.source_languages:
            translator.source_language = source  # else it stays: OPUS-MT's `deu+eng` reads both
        if translator.image_shape and isinstance(self.pictures[0], FeatureFile):
            translator.extractor = translator.extractor or dataclasses.asdict(self.pictures[0].extractor)
        return translator

    def _built(self, tokenizers: list) -> keras.Model:
        recipe = self.recipe
        # A joint vocabulary also shares the embedding matrix.
        shared = recipe.joint_vocabulary and not recipe.source_characters
        vocabularies = tokenizers[: 1 if shared else 2]
        translator = build(recipe.preset, *vocabularies, dtype=recipe.precision, **recipe.model)
        translator.target_tokenizer = tokenizers[-1]
        return translator

    def _loss(self, translator: keras.Model) -> keras.losses.Loss:
        recipe = self.recipe
        if recipe.consistency:
            return ConsistentCrossEntropy(recipe.label_smoothing, recipe.consistency)
        return LabelSmoothedCrossEntropy(recipe.label_smoothing)

    def tokenizers(self, translator):
        direction = translator.direction(*self.languages)
        return [(tokenizer, direction) for tokenizer in translator.tokenizers_of(*direction)]

    def images(self, translator):
        if not translator.image_shape:
            return [None, None]
        return [
            image_rows(rows, len(source), translator.image_shape, translator.extractor)
            for rows, (source, _) in zip(self.pictures, (self.sides, self.validation), strict=True)
        ]

    def read_validation(self, translator, directions, images):
        source, target = self.validation
        readings = translator.sentences_read(source, directions[0], truncate=True)
        text = self.recipe.validation, self.languages[:1], [source], [counts_of(readings)]
        kept = kept_rows(self.recipe, self.corpus, *text, translator.max_length)
        parts = source, target, images, readings
        source, target, images, readings = (rows_of(part, kept) for part in parts)
        tokens = [reading.tokens for reading in readings], translator.target_tokenizer(target)
        return Validation((source, target), {self.languages: readings}, tokens, images)

    def training_batches(self, translator, tokenizers, directions, images, growth):
        if not self.shards:
            return super().training_batches(translator, tokenizers, directions, images, growth)
        recipe, longest = self.recipe, translator.max_length
        batches = ShardedBatches(
            self.shards, recipe.tokens, recipe.num_shapes, recipe.seed, longest, recipe.too_long, growth
        )
        if batches.dropped:
            print_dropped("train", batches.dropped, self.shards.pairs, min(longest, recipe.tokens))
        return batches, self.shards.unknown

    def batches(self, translator, split, texts, sides, images=None, growth=1.0):
        recipe, longest = self.recipe, translator.max_length
        limit = min(longest, recipe.tokens)
        sides, kept = cut_or_kept(recipe, self.corpus, split, self.languages, texts, sides, limit)
        settings = recipe.tokens, recipe.num_shapes, recipe.seed
        images = rows_of(images, kept)
        return Batches(*sides, *settings, max_length=longest, images=images, growth=growth)

    def scorer(self, translator, read):
        direction, lowercase = translator.direction(*self.languages), translator.target_tokenizer.lowercases
        others = self.recipe.target, direction, read.images, lowercase
        return TranslationScore(read.readings[self.languages], read.texts[1], *others)


@dataclasses.dataclass(frozen=True)
class SeveralDirections(Task):
    """The task of a recipe with `languages`: one model for several directions of aligned text.

    Attributes:
        directions: (source, target) languages.
        weights: as `recipe_weights` returns them.
    """

    directions: Sequence[tuple[str, str]] = ()
    weights: dict[tuple[str, str], float] = dataclasses.field(default_factory=dict)

    @classmethod
    def of(cls, recipe: Recipe, corpus: Corpus) -> Self:
        """Return the task with its text. Arguments and errors are those of `recipe_task`."""
        directions, languages = recipe_directions(recipe), text_languages(recipe)
        weights = recipe_weights(recipe, directions)
        sides = corpus.sides("train", languages)
        sides = with_capitals(sides, languages, recipe.capitals, recipe.seed, True)
        validation = corpus.sides(recipe.validation, languages)
        return cls(recipe, corpus, languages, sides, validation, directions=directions, weights=weights)

    def learn(self, folder):
        size, form, tokenizers = self.recipe.vocabulary_size, self.recipe.text, {}
        for language, text in zip(self.languages, self.sides, strict=True):
            side = {language: (language, text)}
            (tokenizers[language],) = learned_subwords(folder, language, side, size, form)
        return tokenizers

    def tokenizers(self, translator):
        directions = [translator.direction(language, language) for language in self.languages]
        return [(translator.tokenizers_of(*direction)[0], direction) for direction in directions]

    def read_validation(self, translator, directions, images):
        # In any direction, a sentence is read alike, but for the token of a language.
        readings = [
            translator.sentences_read(text, direction, truncate=True)
            for text, direction in zip(self.validation, directions, strict=True)
        ]
        text = self.recipe.validation, self.languages, self.validation, list(map(counts_of, readings))
        kept = kept_rows(self.recipe, self.corpus, *text, translator.max_length)
        texts, readings = ([rows_of(rows, kept) for rows in some] for some in (self.validation, readings))
        tokens = [[reading.tokens for reading in some] for some in readings]
        sources, named = (dict(zip(self.languages, some, strict=True)) for some in (readings, tokens))
        sources = {pair: sources[pair[0]] for pair in self.directions}
        if not translator.multilingual:  # the first token may be that of the target language
            for pair, read in sources.items():
                rows, _ = tokens_of_direction(translator, pair, named)
                sources[pair] = [one._replace(tokens=row) for one, row in zip(read, rows, strict=True)]
        return Validation(texts, sources, tokens)

    def _built(self, tokenizers: dict) -> keras.Model:
        return build(self.recipe.preset, tokenizers, dtype=self.recipe.precision, **self.recipe.model)

    def _loss(self, translator: keras.Model) -> keras.losses.Loss:
        kind = SentenceCrossEntropy if translator.multilingual else LabelSmoothedCrossEntropy
        return kind(self.recipe.label_smoothing)

    def batches(self, translator, split, texts, sides, images=None, growth=1.0):
        recipe, longest = self.recipe, translator.max_length
        limit = longest if recipe.sentences else min(longest, recipe.tokens)
        sides, _ = cut_or_kept(recipe, self.corpus, split, self.languages, texts, sides, limit)
        tokens = dict(zip(self.languages, sides, strict=True))
        if not translator.multilingual:
            tokens = {pair: tokens_of_direction(translator, pair, tokens) for pair in self.directions}
        return PairBatches(
            tokens,
            self.directions,
            recipe.languages if translator.multilingual else None,
            self.weights or None,
            recipe.tokens,
            recipe.sentences or None,
            recipe.num_shapes,
            recipe.batches_per_epoch or None,
            recipe.seed,
            longest,
            growth,
        )

    def scorer(self, translator, read):
        count = self.recipe.validation_sentences or None
        texts = {code: rows[:count] for code, rows in zip(self.languages, read.texts, strict=True)}
        lowercase = all(translator.tokenizers_of(*pair)[1].lowercases for pair in self.directions)
        scores = {}
        for pair, readings in read.readings.items():
            own = readings[:count], texts[pair[1]], pair[1], translator.direction(*pair)
            scores[pair] = TranslationScore(*own, lowercase=lowercase)
        return DirectionScores(scores)


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


def tokens_of_direction(
    translator: keras.Model, pair: tuple[str, str], tokens: dict[str, list[list[int]]]
) -> list[list[list[int]]]:
    """Return the two sides of a direction, for a model whose vocabulary names languages.

    `tokens` are each language's sentences, after the token of a language.
    """
    direction, sides = translator.direction(*pair), []
    for tokenizer, language in zip(translator.tokenizers_of(*direction), pair, strict=True):
        named = translator.tokenizer_options(tokenizer, *direction).get("language")
        first = tokenizer.language_tokens(named)
        sides.append([[*first, *row[1:]] if row else [] for row in tokens[language]])
    return sides


def data_digest(batches: keras.utils.PyDataset, validation: Sequence[list[str]], images=None) -> str:
    """Return the SHA-256 of training batches, validation text and up to 64 of its images."""
    digest = hashlib.sha256(f"{batches.digest()} {json.dumps(validation)}".encode())
    if images is not None:
        digest.update(sample_of(images))
    return digest.hexdigest()
