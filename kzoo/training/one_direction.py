"""Prepares a run of one direction: text, vocabularies, model, batches and validation score."""

import dataclasses
from functools import cached_property
from pathlib import Path
from typing import Self

import keras
import numpy as np

from kzoo.data import Batches, Corpus, FeatureFile, ShardedBatches, Shards
from kzoo.images import image_rows
from kzoo.models import ConsistentCrossEntropy, LabelSmoothedCrossEntropy
from kzoo.presets import build
from kzoo.training.capitals import with_capitals
from kzoo.training.long_sentences import counts_of, cut_or_kept, kept_rows, print_dropped, rows_of
from kzoo.training.prepared_run import Task, Validation
from kzoo.training.recipe import Recipe, shard_settings
from kzoo.training.trained_rows import ROWS, copy_rows
from kzoo.training.validation import TranslationScore
from kzoo.training.vocabularies import learned_tokenizers


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
