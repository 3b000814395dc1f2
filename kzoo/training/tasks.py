"""A recipe's text, vocabularies, model, batches and validation score, for one direction or for several."""

import dataclasses
import shutil
from collections.abc import Sequence
from pathlib import Path

import keras
import numpy as np
from keras_hub.tokenizers import Tokenizer

from kzoo.data import Batches, Corpus, FeatureFile, PairBatches, ShardedBatches, Shards
from kzoo.data.batch_shapes import check_longest
from kzoo.errors import UserError
from kzoo.files import whole_folder
from kzoo.hub.preset import METADATA_FILE, Preset
from kzoo.images import image_rows
from kzoo.models import (
    SGD,
    Adam,
    ConsistentCrossEntropy,
    LabelSmoothedCrossEntropy,
    NoamSchedule,
    SentenceCrossEntropy,
)
from kzoo.presets import build, load
from kzoo.presets.builders import BUILDERS
from kzoo.text.vocabulary import unknown_characters
from kzoo.training.corpus import recipe_directions, recipe_weights, text_languages
from kzoo.training.early_checks import starting_preset
from kzoo.training.recipe import Recipe, check_model, shard_settings
from kzoo.training.run_folder import START
from kzoo.training.trained_rows import ROWS, copy_rows, record_rows, recorded_in
from kzoo.training.validation import DirectionScores, TranslationScore
from kzoo.training.vocabularies import learned_subwords, learned_tokenizers


class Task:
    """What a run trains, for a recipe of one direction or of several.

    Attributes:
        sides: the training text, a list of sentences for each language; empty if it is read from shards.
        validation: sentences of the validation split. `build` removes those that the recipe drops.
        unknown: for each language, the characters of the training text that its vocabulary lacks.
        images: the images of `"train"` and `"validation"`, if the model reads images.
        loss_unit: what the loss is a mean over.
    """

    loss_unit = "token"

    def __init__(self, recipe: Recipe, corpus: Corpus):
        self.recipe, self.corpus, self.sides, self.unknown, self.images = recipe, corpus, ([], []), {}, {}

    def begin(self, folder: Path):
        """Write the vocabularies, or the preset to fine-tune, to the run's folder."""
        if self.recipe.preset in BUILDERS:
            self.learn(folder)
        else:
            copy_start(self.recipe, folder)

    def record_rows(self, folder: Path):
        """Write the digests of the training text's rows to the run's folder."""
        record_rows(folder / ROWS, self.sides)

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`."""
        recipe, untrained = self.recipe, self.recipe.preset in BUILDERS
        translator = self._built(self.learn(folder)) if untrained else load_start(recipe, folder)
        languages = translator.languages if translator.multilingual else None
        recurrent = hasattr(translator.backbone, "language_model")
        check_model(recipe, languages, bool(getattr(translator, "image_shape", None)), recurrent)
        translator.compile(optimizer=make_optimizer(recipe, translator.backbone.width), loss=self._loss())
        translator.search = translator.search.changed(**recipe.search_settings())  # `None` keeps a setting
        self._match(translator)
        return translator

    def _tokens(
        self,
        split: str,
        languages: Sequence[str],
        texts: Sequence[list[str]],
        tokenizers: Sequence[Tokenizer],
        limit: int,
    ) -> tuple[list[list[list[int]]], np.ndarray | None]:
        """Tokenize aligned texts; cut or drop sentences that are too long, as the recipe says.

        `limit` is the maximum length of a sentence, with its start or end symbol.

        Returns:
            The token ids of each text, and the rows that are kept; `None` for all rows.

        Raises:
            UserError: a sentence is too long, and the recipe neither cuts nor drops it; or all are too long.
        """
        sides = [tokenizer(text) for tokenizer, text in zip(tokenizers, texts, strict=True)]
        if split == "train":
            self.unknown = {
                language: unknown_characters(*side)
                for language, *side in zip(languages, texts, sides, tokenizers, strict=True)
            }
        if self.recipe.truncate:
            return [[tokens[: limit - 1] for tokens in side] for side in sides], None
        lengths = np.array([list(map(len, side)) for side in sides]) + 1  # (languages, rows)
        longest = lengths.max(axis=0)
        if self.recipe.too_long == "error" and longest.max() > limit:
            files = dict.fromkeys(self.corpus.read(split, language).where for language in languages)
            pair = "sentence" if len(sides) == 1 else "sentence pair"
            row = longest.argmax()
            side = lengths[:, row].argmax()
            begins = list(texts)[side][row][:40]  # rows held out of a text have other numbers than its lines
            check_longest(longest, limit, f"split {split} ({', '.join(files)}): {begins!r}…, {pair}")
        kept = np.flatnonzero(longest <= limit)
        if len(kept) == len(longest):
            return sides, None
        if not len(kept):
            raise UserError(
                f"split {split}: all sentences are longer than {limit} tokens: "
                "raise model.max_length or tokens"
            )
        print_dropped(split, len(longest) - len(kept), len(longest), limit)
        return [rows_of(side, kept) for side in sides], kept


class OneDirection(Task):
    """The task of a recipe with a `source` and a `target`."""

    def __init__(self, recipe: Recipe, corpus: Corpus):
        super().__init__(recipe, corpus)
        if recipe.shards:
            self.shards = Shards(recipe.shards)
            self.shards.require(**shard_settings(recipe))
            self.unknown = self.shards.unknown
        else:
            self.shards, self.sides = None, corpus.pairs("train", recipe.source, recipe.target)
        self.validation = corpus.pairs(recipe.validation, recipe.source, recipe.target)

    def learn(self, folder: Path) -> list:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        if self.shards:
            self.shards.copy_vocabularies(folder)
        return learned_tokenizers(self.recipe, folder, *self.sides)

    def record_rows(self, folder: Path):
        """Write the digests of the training text's rows to the run's folder."""
        if self.shards:
            copy_rows([self.shards.folder / ROWS], folder / ROWS)
        else:
            super().record_rows(folder)

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

    def _match(self, translator: keras.Model):
        """Match translator and data: their languages, images and validation sentences."""
        recipe, split = self.recipe, self.recipe.validation
        languages = translator.direction(recipe.source, recipe.target)
        translator.source_language, translator.target_language = languages
        if translator.image_shape:
            self._read_images(translator)
        source = [recipe.source], self.validation[:1], [translator.source_tokenizer]
        _, kept = self._tokens(split, *source, translator.backbone.max_length)
        self.validation = tuple(rows_of(side, kept) for side in self.validation)
        self.images["validation"] = rows_of(self.images.get("validation"), kept)

    def _read_images(self, translator: keras.Model):
        splits = {"train": "train", "validation": self.recipe.validation}
        images = {part: self.corpus.images(split) for part, split in splits.items()}
        if isinstance(images["train"], FeatureFile):  # not pictures
            translator.extractor = translator.extractor or dataclasses.asdict(images["train"].extractor)
        sentences = {"train": len(self.sides[0]), "validation": len(self.validation[0])}
        self.images = {
            part: image_rows(rows, sentences[part], translator.image_shape, translator.extractor)
            for part, rows in images.items()
        }

    def batches(self, translator: keras.Model) -> Batches | ShardedBatches:
        """Return the training batches."""
        recipe, most = self.recipe, translator.backbone.max_length
        if self.shards is None:
            return self._batches(translator, self.sides, "train", self.images.get("train"))
        batches = ShardedBatches(
            self.shards, recipe.tokens, recipe.num_shapes, recipe.seed, most, recipe.too_long
        )
        if batches.dropped:
            print_dropped("train", batches.dropped, self.shards.pairs, min(most, recipe.tokens))
        return batches

    def _batches(
        self, translator: keras.Model, pairs: tuple[list[str], list[str]], split: str, images
    ) -> Batches:
        recipe, most = self.recipe, translator.backbone.max_length
        languages = recipe.source, recipe.target
        tokenizers = translator.source_tokenizer, translator.target_tokenizer
        sides, kept = self._tokens(split, languages, pairs, tokenizers, min(most, recipe.tokens))
        settings = recipe.tokens, recipe.num_shapes, recipe.seed
        return Batches(*sides, *settings, max_length=most, images=rows_of(images, kept))

    def validation_batches(self, translator: keras.Model) -> Batches:
        """Return the batches of the validation split."""
        images = self.images.get("validation")
        return self._batches(translator, self.validation, self.recipe.validation, images)

    def score(self, translator: keras.Model) -> keras.callbacks.Callback:
        """Return the callback that scores the model on the validation split after each epoch."""
        recipe, (source, target) = self.recipe, self.validation
        images, lowercase = self.images.get("validation"), translator.target_tokenizer.lowercases
        return TranslationScore(source, target, recipe.target, recipe.truncate, images, lowercase)


class SeveralDirections(Task):
    """The task of a recipe with `languages`: one model for several directions of aligned text."""

    loss_unit = "sentence"

    def __init__(self, recipe: Recipe, corpus: Corpus):
        super().__init__(recipe, corpus)
        self.directions = recipe_directions(recipe)
        self.weights = recipe_weights(recipe)
        first, *others = text_languages(recipe)
        self.train, self.validation = (
            # Each beside the first, because an error names both files.
            {first: corpus.sentences(split, first)}
            | {language: corpus.pairs(split, first, language)[1] for language in others}
            for split in ("train", recipe.validation)
        )
        self.sides = [*self.train.values()]

    def learn(self, folder: Path) -> dict:
        """Return the tokenizers of the run in `folder`; learn its vocabularies if it has none."""
        size, form, tokenizers = self.recipe.vocabulary_size, self.recipe.text, {}
        for language, text in self.train.items():
            side = {language: (language, text)}
            (tokenizers[language],) = learned_subwords(folder, language, side, size, form)
        return tokenizers

    def _built(self, tokenizers: dict) -> keras.Model:
        return build(self.recipe.preset, tokenizers, dtype=self.recipe.precision, **self.recipe.model)

    def _loss(self) -> keras.losses.Loss:
        return SentenceCrossEntropy(self.recipe.label_smoothing)

    def _match(self, translator: keras.Model):
        """Match translator and data: their languages and validation sentences."""
        recipe = self.recipe
        tokenizers = [translator.tokenizers[language] for language in self.validation]
        text = list(self.validation), self.validation.values(), tokenizers
        _, kept = self._tokens(recipe.validation, *text, translator.backbone.max_length)
        self.validation = {language: rows_of(text, kept) for language, text in self.validation.items()}

    def batches(self, translator: keras.Model) -> PairBatches:
        """Return the training batches of all directions."""
        recipe, most = self.recipe, translator.backbone.max_length
        tokenizers = [translator.tokenizers[language] for language in self.train]
        limit = most if recipe.sentences else min(most, recipe.tokens)
        sides, _ = self._tokens("train", list(self.train), self.train.values(), tokenizers, limit)
        return PairBatches(
            dict(zip(self.train, sides, strict=True)),
            self.directions,
            recipe.languages,
            self.weights or None,
            recipe.tokens,
            recipe.sentences or None,
            recipe.num_shapes,
            recipe.batches_per_epoch or None,
            recipe.seed,
            most,
        )

    def score(self, translator: keras.Model) -> keras.callbacks.Callback:
        """Return the callback that scores each direction on the validation split after each epoch."""
        count = self.recipe.validation_sentences or None
        text = {language: sentences[:count] for language, sentences in self.validation.items()}
        lowercase = all(tokenizer.lowercases for tokenizer in translator.tokenizers.values())
        return DirectionScores(text, self.directions, self.recipe.truncate, lowercase)


def make_optimizer(recipe: Recipe, width: int) -> keras.optimizers.Optimizer:
    """Return the recipe's optimizer. Noam's schedule depends on the model's width D."""
    shared = {
        "global_clipnorm": recipe.clip_norm or None,
        "gradient_accumulation_steps": recipe.accumulate if recipe.accumulate > 1 else None,
    }
    if recipe.optimizer == "noam":  # Vaswani et al. 2017, Section 5.3
        rate = NoamSchedule(width, recipe.warmup_steps, recipe.rate_factor, recipe.accumulate)
        return Adam(rate, beta_1=0.9, beta_2=recipe.beta_2, epsilon=1e-9, **shared)
    if recipe.optimizer == "adam":
        # PyTorch's ε, which Keras adds at another place (`Adam`); Keras's default is 1e-7.
        return Adam(recipe.rate, epsilon=1e-8, **shared)
    return SGD(recipe.rate, **shared)


def copy_start(recipe: Recipe, folder: Path):
    """Copy the trained preset that a recipe fine-tunes into a run's folder.

    An earlier copy is kept if the run has a checkpoint, or if the preset no longer exists.

    Raises:
        UserError: there is no such preset, it cannot be downloaded, or a file of it is missing or altered.
    """
    start = folder / START
    preset = starting_preset(recipe, folder)
    if preset.place == start:
        return
    preset.check()
    with whole_folder(start) as copy:
        for name in (METADATA_FILE, *preset.files):
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(preset.folder / name, copy / name)
        if rows := recorded_in(preset.folder):
            copy_rows(rows, copy / ROWS)


def load_start(recipe: Recipe, folder: Path) -> keras.Model:
    """Return the translator that `copy_start` copied, with the recipe's precision and its `model` arguments.

    Raises:
        UserError: the copy is altered, or the model does not take these arguments.
    """
    copy = Preset(folder / START, recipe.preset)  # errors name it as the recipe does
    return load(copy, dtype=recipe.precision, **recipe.model)


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
