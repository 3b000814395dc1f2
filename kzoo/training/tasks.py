"""From a recipe to what is trained: text, vocabularies, model, batches and validation score."""

import dataclasses
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

import keras
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
    tokenized,
    unknown_by_language,
)


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
    return kind(recipe, corpus or recipe_corpus(recipe))


class Task:
    """Prepares what a run trains, for a recipe of one direction or of several.

    Attributes:
        sides: the training text, a list of sentences for each language; empty if it is read from shards.
        texts: `sides`, with further rows, whose sources a reverse model has written.
    """

    sides: Sequence[list[str]] = ([], [])
    texts: Sequence[list[str]] = ([], [])

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
        optimizer = make_optimizer(recipe, translator.backbone.width)
        translator.compile(optimizer=optimizer, loss=self._loss(translator))
        translator.search = translator.search.changed(**recipe.search_settings())  # `None` keeps a setting
        return translator


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
            self.sides = self.texts = with_capitals(sides, languages, recipe.capitals, recipe.seed)
        self.validation = corpus.pairs(recipe.validation, recipe.source, recipe.target)

    def learn(self, folder: Path) -> list:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        if self.shards:
            self.shards.copy_vocabularies(folder)
        return learned_tokenizers(self.recipe, folder, *self.texts)

    def add(self, rows: Sequence[list[str]]):
        """Train on further rows, a list of sentences for each language."""
        self.texts = [[*side, *more] for side, more in zip(self.sides, rows, strict=True)]

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
        languages, counts = [recipe.source], [counts_of(readings)]
        kept = kept_rows(recipe, self.corpus, split, languages, [source], counts, longest)
        parts = source, target, images, readings
        source, target, images, readings = (rows_of(part, kept) for part in parts)
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        tokens = [reading.tokens for reading in readings], translator.target_tokenizer(target)
        subwords = bpe_dropouts(recipe, tokenizers)
        growth = growth_of(subwords, tokens)
        if self.shards:
            batches, unknown = self._sharded_batches(translator, growth), self.shards.unknown
        else:
            languages = recipe.source, recipe.target
            texts = self.texts
            sides = tokenized(tokenizers, texts)
            unknown = unknown_by_language(languages, tokenizers, texts, sides)
            print_rare_subwords(recipe, tokenizers, sides)
            batches = self._batches(translator, "train", texts, sides, train_images, growth)
        validation = None
        if recipe.language_model_epochs:
            validation = self._batches(translator, split, (source, target), tokens, images)
        scorer = self.scorer(translator, readings, target, images)
        digest = data_digest(batches, (source, target), images)
        if recipe.bpe_dropout:
            batches = ResegmentedBatches(batches, subwords[:1], subwords[1:], recipe.seed)
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

    def _loss(self, translator: keras.Model) -> keras.losses.Loss:
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

    def _sharded_batches(self, translator: keras.Model, growth: float) -> ShardedBatches:
        recipe, longest = self.recipe, translator.max_length
        batches = ShardedBatches(
            self.shards, recipe.tokens, recipe.num_shapes, recipe.seed, longest, recipe.too_long, growth
        )
        if batches.dropped:
            print_dropped("train", batches.dropped, self.shards.pairs, min(longest, recipe.tokens))
        return batches

    def _batches(
        self, translator: keras.Model, split: str, texts, sides, images, growth: float = 1.0
    ) -> Batches:
        recipe, longest = self.recipe, translator.max_length
        languages, limit = (recipe.source, recipe.target), min(longest, recipe.tokens)
        sides, kept = cut_or_kept(recipe, self.corpus, split, languages, texts, sides, limit)
        settings = recipe.tokens, recipe.num_shapes, recipe.seed
        images = rows_of(images, kept)
        return Batches(*sides, *settings, max_length=longest, images=images, growth=growth)

    def scorer(
        self, translator: keras.Model, readings: list[Reading], target: list[str], images=None
    ) -> keras.callbacks.Callback:
        """Return the callback that scores the model on validation text after each epoch."""
        lowercase = translator.target_tokenizer.lowercases
        return TranslationScore(readings, target, self.recipe.target, images, lowercase)


class SeveralDirections(Task):
    """The task of a recipe with `languages`: one model for several directions of aligned text."""

    def __init__(self, recipe: Recipe, corpus: Corpus):
        super().__init__(recipe, corpus)
        self.directions = recipe_directions(recipe)
        self.weights = recipe_weights(recipe, self.directions)
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
        directions = {language: translator.direction(language, language) for language in languages}
        tokenizers = [translator.tokenizers_of(*direction)[0] for direction in directions.values()]
        texts, longest = dict(zip(languages, self.validation, strict=True)), translator.max_length
        # In any direction, a sentence is read alike, but for the token of a language.
        readings = {
            language: translator.sentences_read(text, directions[language], truncate=True)
            for language, text in texts.items()
        }
        counts = list(map(counts_of, readings.values()))
        texts_of = recipe.validation, languages, self.validation
        kept = kept_rows(recipe, self.corpus, *texts_of, counts, longest)
        texts, readings = (
            {language: rows_of(rows, kept) for language, rows in some.items()} for some in (texts, readings)
        )
        sides = [
            tokenizer(text, **translator.tokenizer_options(tokenizer, *direction))
            for tokenizer, text, direction in zip(tokenizers, self.sides, directions.values(), strict=True)
        ]
        unknown = unknown_by_language(languages, tokenizers, self.sides, sides)
        print_rare_subwords(recipe, tokenizers, sides)
        subwords = bpe_dropouts(recipe, tokenizers)
        tokens = [[reading.tokens for reading in some] for some in readings.values()]
        batches = self.batches(translator, sides, growth_of(subwords, tokens))
        if not translator.multilingual:  # the first token may be that of the target language
            tokens = {language: [reading.tokens for reading in some] for language, some in readings.items()}
            sources = {pair: tokens_of_direction(translator, pair, tokens)[0] for pair in self.directions}
            readings = {
                pair: [one._replace(tokens=row) for one, row in zip(readings[pair[0]], rows, strict=True)]
                for pair, rows in sources.items()
            }
        scorer, digest = self.scorer(translator, readings, texts), data_digest(batches, texts)
        if recipe.bpe_dropout:
            batches = ResegmentedBatches(batches, subwords, subwords, recipe.seed)
        unit = "sentence" if translator.multilingual else "token"
        return PreparedRun(translator, batches, scorer, digest, unknown, loss_unit=unit)

    def _built(self, tokenizers: dict) -> keras.Model:
        return build(self.recipe.preset, tokenizers, dtype=self.recipe.precision, **self.recipe.model)

    def _loss(self, translator: keras.Model) -> keras.losses.Loss:
        kind = SentenceCrossEntropy if translator.multilingual else LabelSmoothedCrossEntropy
        return kind(self.recipe.label_smoothing)

    def batches(
        self, translator: keras.Model, sides: list[list[list[int]]], growth: float = 1.0
    ) -> PairBatches:
        """Return the training batches of all directions, from the token ids of the training text."""
        recipe, languages, longest = self.recipe, self.text_languages, translator.max_length
        limit = longest if recipe.sentences else min(longest, recipe.tokens)
        sides, _ = cut_or_kept(recipe, self.corpus, "train", languages, self.sides, sides, limit)
        tokens = dict(zip(languages, sides, strict=True))
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

    def scorer(
        self, translator: keras.Model, readings: dict[object, list[Reading]], texts: dict[str, list[str]]
    ) -> keras.callbacks.Callback:
        """Return the callback that scores each direction on validation text after each epoch."""
        count = self.recipe.validation_sentences or None
        texts, readings = ({key: rows[:count] for key, rows in some.items()} for some in (texts, readings))
        lowercase = all(translator.tokenizers_of(*pair)[1].lowercases for pair in self.directions)
        return DirectionScores(readings, texts, self.directions, lowercase)


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
        first = tokenizer.beginning(named)
        sides.append([[*first, *row[1:]] if row else [] for row in tokens[language]])
    return sides


def data_digest(batches: keras.utils.PyDataset, validation: Sequence | dict, images=None) -> str:
    """Return the SHA-256 of training batches, validation text and up to 64 of its images."""
    digest = hashlib.sha256(f"{batches.digest()} {json.dumps(validation)}".encode())
    if images is not None:
        digest.update(sample_of(images))
    return digest.hexdigest()
