"""From a recipe to what is trained: text, vocabularies, model, batches and validation score."""

import dataclasses
import hashlib
import itertools
import json
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.data import Batches, Corpus, FeatureFile, PairBatches, ShardedBatches, Shards
from kzoo.data.batch_shapes import check_longest
from kzoo.data.batches import sample_of
from kzoo.errors import UserError
from kzoo.images import image_rows
from kzoo.models import (
    SGD,
    Adam,
    ConsistentCrossEntropy,
    LabelSmoothedCrossEntropy,
    NoamSchedule,
    RecurrentBackbone,
    SentenceCrossEntropy,
)
from kzoo.presets import build
from kzoo.presets.builders import BUILDERS
from kzoo.text import SubwordTokenizer
from kzoo.text.reading import Reading
from kzoo.text.vocabulary import UnknownCharacters, unknown_characters
from kzoo.training.back_translation import back_translated
from kzoo.training.capitals import with_capitals
from kzoo.training.cooldown import CoolingAdam, CoolingSGD
from kzoo.training.corpus import recipe_corpus, recipe_directions, recipe_weights, text_languages
from kzoo.training.recipe import Recipe, shard_settings
from kzoo.training.recipe_checks import check_model
from kzoo.training.starting_preset import copy_start, load_start
from kzoo.training.trained_rows import ROWS, copy_rows, record_rows
from kzoo.training.validation import DirectionScores, TranslationScore
from kzoo.training.vocabularies import learned_subwords, learned_tokenizers

RARE = 10  # fewer occurrences hardly teach a subword


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
    batches: Batches | ShardedBatches | PairBatches
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
    return kind(recipe, corpus or recipe_corpus(recipe))


class Task:
    """Prepares what a run trains, for a recipe of one direction or of several.

    Attributes:
        sides: the training text, a list of sentences for each language; empty if it is read from shards.
    """

    sides: Sequence[list[str]] = ([], [])

    def __init__(self, recipe: Recipe, corpus: Corpus | None = None):
        self.recipe, self.corpus = recipe, corpus

    def begin(self, folder: Path):
        """Write the vocabularies, or the preset to fine-tune, to the run's folder."""
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
        raise NotImplementedError

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`."""
        recipe, untrained = self.recipe, self.recipe.preset in BUILDERS
        translator = self._built(self.learn(folder)) if untrained else load_start(recipe, folder)
        languages = translator.languages if translator.multilingual else None
        recurrent = isinstance(translator.backbone, RecurrentBackbone)
        check_model(recipe, languages, bool(translator.image_shape), recurrent)
        translator.compile(optimizer=make_optimizer(recipe, translator.backbone.width), loss=self._loss())
        translator.search = translator.search.changed(**recipe.search_settings())  # `None` keeps a setting
        return translator

    def _kept(
        self,
        split: str,
        languages: Sequence[str],
        texts: Sequence[list[str]],
        sides: Sequence[list[list[int]]],
        limit: int,
    ) -> tuple[Sequence[list[list[int]]], np.ndarray | None]:
        """Cut or drop the sentences of aligned texts that are too long, as the recipe says.

        `sides` are the token ids of the `texts`; the other arguments and the errors are as in `_kept_rows`.

        Returns:
            The token ids of each text, and the rows that are kept; `None` for all rows.
        """
        if self.recipe.truncate:
            return [[tokens[: limit - 1] for tokens in side] for side in sides], None
        kept = self._kept_rows(split, languages, texts, [list(map(len, side)) for side in sides], limit)
        return [rows_of(side, kept) for side in sides], kept

    def _kept_rows(
        self,
        split: str,
        languages: Sequence[str],
        texts: Sequence[list[str]],
        counts: Sequence[list[int]],
        limit: int,
    ) -> np.ndarray | None:
        """Return the rows of aligned texts that the recipe does not drop as too long; `None` for all rows.

        `counts` are the numbers of tokens of the `texts`; `limit` is the maximum length of a sentence, with
        its start or end symbol.

        Raises:
            UserError: a sentence is too long, and the recipe neither cuts nor drops it; or all are too long.
        """
        if self.recipe.truncate:
            return None
        lengths = np.array(counts) + 1  # (languages, rows)
        longest = lengths.max(axis=0)
        if self.recipe.too_long == "error" and longest.max() > limit:
            read = self.corpus.read(split, languages[0])
            given = longest[: len(read.sentences)]  # without those in capitals, which may be left out
            files = dict.fromkeys(self.corpus.read(split, language).where for language in languages)
            pair = "sentence" if len(texts) == 1 else "sentence pair"
            row = given.argmax()
            begins = texts[lengths[:, row].argmax()][row][:40]
            # The rows' numbers in the file, if not all are read.
            check_longest(given, limit, f"split {split} ({', '.join(files)}): {begins!r}…, {pair}", read.rows)
        kept = np.flatnonzero(longest <= limit)
        if len(kept) == len(longest):
            return None
        if not len(kept):
            raise UserError(
                f"split {split}: all sentences are longer than {limit} tokens: "
                "raise model.max_length or tokens"
            )
        print_dropped(split, len(longest) - len(kept), len(longest), limit)
        return kept


class OneDirection(Task):
    """The task of a recipe with a `source` and a `target`."""

    def __init__(self, recipe: Recipe, corpus: Corpus):
        super().__init__(recipe, corpus)
        self.shards = Shards(recipe.shards) if recipe.shards else None
        if self.shards:
            self.shards.require(**shard_settings(recipe))
        else:
            languages = recipe.source, recipe.target
            sides = corpus.pairs("train", *languages)
            self.sides = with_capitals(sides, languages, recipe.capitals, recipe.seed)
        self.validation = corpus.pairs(recipe.validation, recipe.source, recipe.target)
        self._further = None

    def learn(self, folder: Path) -> list:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        if self.shards:
            self.shards.copy_vocabularies(folder)
        return learned_tokenizers(self.recipe, folder, *self._with_back_translated(folder))

    def _with_back_translated(self, folder: Path) -> Sequence[list[str]]:
        """Return the training text, with the further rows of `monolingual_target`."""
        if not self.recipe.monolingual_target:
            return self.sides
        if self._further is None:
            self._further = back_translated(self.recipe, self.corpus, folder)
        return [[*side, *more] for side, more in zip(self.sides, self._further, strict=True)]

    def record_rows(self, folder: Path):
        """Write the digests of the training text's rows to the run's folder."""
        if self.shards:
            copy_rows([self.shards.folder / ROWS], folder / ROWS)
        else:
            super().record_rows(folder)

    def prepare(self, folder):
        recipe, split, translator = self.recipe, self.recipe.validation, self.build(folder)
        train_images, images = self._images(translator)
        source, target = self.validation
        readings = translator.sentences_read(source, translator.direction(), truncate=True)
        longest = translator.max_length
        kept = self._kept_rows(split, [recipe.source], [source], [counts_of(readings)], longest)
        parts = source, target, images, readings
        source, target, images, readings = (rows_of(part, kept) for part in parts)
        if self.shards:
            batches, unknown = self._sharded_batches(translator), self.shards.unknown
        else:
            languages = recipe.source, recipe.target
            tokenizers = translator.source_tokenizer, translator.target_tokenizer
            texts = self._with_back_translated(folder)
            sides = tokenized(tokenizers, texts)
            unknown = unknown_by_language(languages, tokenizers, texts, sides)
            print_rare_subwords(recipe, tokenizers, sides)
            batches = self._batches(translator, "train", texts, sides, train_images)
        validation = None
        if recipe.language_model_epochs:
            sides = [reading.tokens for reading in readings], translator.target_tokenizer(target)
            validation = self._batches(translator, split, (source, target), sides, images)
        scorer = self.scorer(translator, source, target, images, readings)
        digest = data_digest(batches, (source, target), images)
        return PreparedRun(translator, batches, scorer, digest, unknown, validation)

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`, with the recipe's languages."""
        translator = super().build(folder)
        languages = translator.direction(self.recipe.source, self.recipe.target)
        translator.source_language, translator.target_language = languages
        return translator

    def _built(self, tokenizers: list) -> keras.Model:
        recipe = self.recipe
        # A joint vocabulary also shares the embedding matrix.
        shared = recipe.joint_vocabulary and not recipe.source_characters
        vocabularies = tokenizers[: 1 if shared else 2]
        translator = build(recipe.preset, *vocabularies, dtype=recipe.precision, **recipe.model)
        translator.target_tokenizer = tokenizers[-1]
        return translator

    def _loss(self) -> keras.losses.Loss:
        recipe = self.recipe
        if recipe.consistency:
            return ConsistentCrossEntropy(recipe.label_smoothing, recipe.consistency)
        return LabelSmoothedCrossEntropy(recipe.label_smoothing)

    def _images(self, translator: keras.Model) -> list:
        """Return the images of the training and of the validation text; `None` if the model reads none."""
        if not translator.image_shape:
            return [None, None]
        images = [self.corpus.images(split) for split in ("train", self.recipe.validation)]
        if isinstance(images[0], FeatureFile):  # not pictures
            translator.extractor = translator.extractor or dataclasses.asdict(images[0].extractor)
        return [
            image_rows(rows, len(source), translator.image_shape, translator.extractor)
            for rows, (source, _) in zip(images, (self.sides, self.validation), strict=True)
        ]

    def _sharded_batches(self, translator: keras.Model) -> ShardedBatches:
        recipe, longest = self.recipe, translator.max_length
        batches = ShardedBatches(
            self.shards, recipe.tokens, recipe.num_shapes, recipe.seed, longest, recipe.too_long
        )
        if batches.dropped:
            print_dropped("train", batches.dropped, self.shards.pairs, min(longest, recipe.tokens))
        return batches

    def _batches(self, translator: keras.Model, split: str, texts, sides, images) -> Batches:
        recipe, longest = self.recipe, translator.max_length
        languages, limit = (recipe.source, recipe.target), min(longest, recipe.tokens)
        sides, kept = self._kept(split, languages, texts, sides, limit)
        settings = recipe.tokens, recipe.num_shapes, recipe.seed
        return Batches(*sides, *settings, max_length=longest, images=rows_of(images, kept))

    def scorer(
        self, translator: keras.Model, source: list[str], target: list[str], images=None, readings=None
    ) -> keras.callbacks.Callback:
        """Return the callback that scores the model on validation text after each epoch."""
        recipe, lowercase = self.recipe, translator.target_tokenizer.lowercases
        others = recipe.truncate, images, lowercase
        return TranslationScore(source, target, recipe.target, *others, readings=readings)


class SeveralDirections(Task):
    """The task of a recipe with `languages`: one model for several directions of aligned text."""

    def __init__(self, recipe: Recipe, corpus: Corpus):
        super().__init__(recipe, corpus)
        self.directions = recipe_directions(recipe)
        self.weights = recipe_weights(recipe)
        languages = self.text_languages = text_languages(recipe)
        sides = corpus.sides("train", languages)
        self.sides = with_capitals(sides, languages, recipe.capitals, recipe.seed, several=True)
        self.validation = corpus.sides(recipe.validation, languages)

    def learn(self, folder: Path) -> dict:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        size, form, tokenizers = self.recipe.vocabulary_size, self.recipe.text, {}
        for language, text in zip(self.text_languages, self.sides, strict=True):
            side = {language: (language, text)}
            (tokenizers[language],) = learned_subwords(folder, language, side, size, form)
        return tokenizers

    def prepare(self, folder):
        recipe, languages, translator = self.recipe, self.text_languages, self.build(folder)
        tokenizers = [translator.tokenizers[language] for language in languages]
        texts, longest = dict(zip(languages, self.validation, strict=True)), translator.max_length
        # In any direction, a sentence is read alike.
        readings = {
            language: translator.sentences_read(text, (language, language), truncate=True)
            for language, text in texts.items()
        }
        counts = list(map(counts_of, readings.values()))
        kept = self._kept_rows(recipe.validation, languages, self.validation, counts, longest)
        texts, readings = (
            {language: rows_of(rows, kept) for language, rows in some.items()} for some in (texts, readings)
        )
        sides = tokenized(tokenizers, self.sides)
        unknown = unknown_by_language(languages, tokenizers, self.sides, sides)
        print_rare_subwords(recipe, tokenizers, sides)
        batches = self.batches(sides, longest)
        scorer, digest = self.scorer(translator, texts, readings), data_digest(batches, texts)
        return PreparedRun(translator, batches, scorer, digest, unknown, loss_unit="sentence")

    def _built(self, tokenizers: dict) -> keras.Model:
        return build(self.recipe.preset, tokenizers, dtype=self.recipe.precision, **self.recipe.model)

    def _loss(self) -> keras.losses.Loss:
        return SentenceCrossEntropy(self.recipe.label_smoothing)

    def batches(self, sides: list[list[list[int]]], longest: int) -> PairBatches:
        """Return the training batches of all directions, from the token ids of the training text.

        `longest` is the maximum length of a sentence that the model reads.
        """
        recipe, languages = self.recipe, self.text_languages
        limit = longest if recipe.sentences else min(longest, recipe.tokens)
        sides, _ = self._kept("train", languages, self.sides, sides, limit)
        return PairBatches(
            dict(zip(languages, sides, strict=True)),
            self.directions,
            recipe.languages,
            self.weights or None,
            recipe.tokens,
            recipe.sentences or None,
            recipe.num_shapes,
            recipe.batches_per_epoch or None,
            recipe.seed,
            longest,
        )

    def scorer(
        self, translator: keras.Model, texts: dict[str, list[str]], readings: dict[str, list[Reading]]
    ) -> keras.callbacks.Callback:
        """Return the callback that scores each direction on validation text after each epoch."""
        count = self.recipe.validation_sentences or None
        texts, readings = (
            {language: rows[:count] for language, rows in some.items()} for some in (texts, readings)
        )
        lowercase = all(tokenizer.lowercases for tokenizer in translator.tokenizers.values())
        return DirectionScores(texts, self.directions, self.recipe.truncate, lowercase, readings)


def counts_of(readings: Sequence[Reading]) -> list[int]:
    """Return the number of tokens of each sentence, with those that are cut."""
    return [len(reading.tokens) + reading.cut for reading in readings]


def tokenized(tokenizers: Sequence[Tokenizer], texts: Sequence[list[str]]) -> list[list[list[int]]]:
    """Return the token ids of each language's sentences."""
    return [tokenizer(text) for tokenizer, text in zip(tokenizers, texts, strict=True)]


def unknown_by_language(
    languages: Sequence[str], tokenizers: Sequence[Tokenizer], texts: Sequence[list[str]], sides
) -> dict[str, UnknownCharacters]:
    """Return the characters that each language's vocabulary lacks; `sides` are the texts' token ids."""
    return {
        language: unknown_characters(text, tokens, tokenizer)
        for language, tokenizer, text, tokens in zip(languages, tokenizers, texts, sides, strict=True)
    }


def print_rare_subwords(recipe: Recipe, tokenizers: Sequence[Tokenizer], sides: Sequence[list[list[int]]]):
    """Print a line for each new vocabulary of which most subwords are too rare in the text to be learned."""
    counts = {}
    for tokenizer, side in zip(tokenizers, sides, strict=True):
        if recipe.preset in BUILDERS and isinstance(tokenizer, SubwordTokenizer):
            tokens = np.fromiter(itertools.chain.from_iterable(side), int)
            found = np.bincount(tokens, minlength=tokenizer.vocabulary_size())
            counts[tokenizer.proto] = counts.get(tokenizer.proto, 0) + found
    for count in counts.values():
        if (rare := np.mean(count < RARE)) > 0.5:
            print(
                f"{rare:.0%} of {len(count):,} subwords occur fewer than {RARE} times in the training text: "
                "lower vocabulary_size"
            )


def data_digest(batches: keras.utils.PyDataset, validation: Sequence | dict, images=None) -> str:
    """Return the SHA-256 of training batches, validation text and up to 64 of its images."""
    digest = hashlib.sha256(f"{batches.digest()} {json.dumps(validation)}".encode())
    if images is not None:
        digest.update(sample_of(images))
    return digest.hexdigest()


def make_optimizer(recipe: Recipe, width: int) -> keras.optimizers.Optimizer:
    """Return the recipe's optimizer. Noam's schedule depends on the model's width D."""
    shared = {
        "global_clipnorm": recipe.clip_norm or None,
        "gradient_accumulation_steps": recipe.accumulate if recipe.accumulate > 1 else None,
    }
    adam, sgd = (CoolingAdam, CoolingSGD) if recipe.cooldown else (Adam, SGD)
    if recipe.optimizer == "noam":  # Vaswani et al. 2017, Section 5.3
        rate = NoamSchedule(width, recipe.warmup_steps, recipe.rate_factor, recipe.accumulate)
        return adam(rate, beta_1=0.9, beta_2=recipe.beta_2, epsilon=1e-9, **shared)
    if recipe.optimizer == "adam":
        # PyTorch's ε, which Keras adds at another place (`Adam`); Keras's default is 1e-7.
        return adam(recipe.rate, epsilon=1e-8, **shared)
    return sgd(recipe.rate, **shared)


def print_dropped(split: str, count: int, total: int, limit: int):
    """Print how many pairs were dropped because they are too long."""
    print(f"split {split}: {count:,} of {total:,} pairs left out: longer than {limit} tokens")


def rows_of(rows, kept: np.ndarray | None):
    """Return the kept rows of a list, an array or a feature file; if `kept` is `None`, all rows."""
    if rows is None or kept is None:
        return rows
    if isinstance(rows, FeatureFile):
        return dataclasses.replace(rows, order=rows.order[kept])
    return [rows[row] for row in kept] if isinstance(rows, list) else rows[kept]
