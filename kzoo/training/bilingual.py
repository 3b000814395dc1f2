"""What training in one direction needs: sentence pairs, tokenizers, a model, batches, a score."""

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path

import keras

from kzoo.data import Batches, Corpus, Extractor, ShardedBatches, Shards
from kzoo.data.unknown_characters import unknown_characters
from kzoo.errors import UserError
from kzoo.files import write_json
from kzoo.models import ConsistentCrossEntropy, LabelSmoothedCrossEntropy
from kzoo.models.images import image_rows
from kzoo.presets import build
from kzoo.presets.shelf import direction, is_builder
from kzoo.text import UNKNOWN
from kzoo.training.checkpoints import saved_in
from kzoo.training.language_model import train_language_model
from kzoo.training.long_pairs import kept_rows, print_dropped, rows_of
from kzoo.training.optimizers import make_optimizer
from kzoo.training.preemption import Preemption
from kzoo.training.recipe import Recipe
from kzoo.training.recipe_corpus import naming
from kzoo.training.starting_preset import load_start
from kzoo.training.translation_score import TranslationScore
from kzoo.training.vocabularies import learned_characters, learned_subwords, shared_subwords


class BilingualTask:
    """A recipe with a `source` and a `target`: the model translates from one to the other.

    Args:
        recipe: the recipe.
        corpus: what it trains on.
    """

    def __init__(self, recipe: Recipe, corpus: Corpus):
        self.recipe = recipe
        self.shards = recipe_shards(recipe) if recipe.shards else None
        self.pairs = ([], []) if recipe.shards else corpus.pairs("train", recipe.source, recipe.target)
        self.validation = corpus.pairs(recipe.validation, recipe.source, recipe.target)
        self.corpus, self.images = corpus, {}
        self.unknown = self.shards.unknown if self.shards else {}

    def learn(self, folder: Path) -> list:
        """Return the tokenizers of the run in `folder`, learned if necessary."""
        if self.shards:
            self.shards.copy_vocabularies(folder)
        return learned_tokenizers(self.recipe, folder, *self.pairs)

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`."""
        recipe, translator = self.recipe, self._translator(folder)
        if recipe.consistency:
            loss = ConsistentCrossEntropy(recipe.label_smoothing, recipe.consistency)
        else:
            loss = LabelSmoothedCrossEntropy(recipe.label_smoothing)
        translator.compile(optimizer=make_optimizer(recipe, translator.backbone.width), loss=loss)
        # A preset that is fine-tuned has the rest of its search.
        translator.search = translator.search.changed(
            beam_size=recipe.beam_size, length_penalty=recipe.length_penalty
        )
        if recipe.language_model_epochs and not hasattr(translator.backbone, "language_model"):
            raise UserError(
                f"{recipe.preset} has no recurrent decoder to train first: leave language_model_epochs out"
            )
        if translator.image_shape and self.shards:
            raise UserError(
                f"{recipe.preset} reads images, but shards have none: remove shards from the recipe"
            )
        if translator.image_shape:
            pairs = {"train": self.pairs, recipe.validation: self.validation}
            images = {split: self.corpus.images(split) for split in pairs}
            translator.extractor = translator.extractor or run_extractor(folder, images["train"])
            self.images = {
                split: image_rows(rows, len(pairs[split][0]), translator.image_shape, translator.extractor)
                for split, rows in images.items()
            }
        if recipe.too_long == "drop":
            sources = [translator.source_tokenizer(self.validation[0])]
            kept = kept_rows(recipe.validation, sources, translator.backbone.max_length)
            self.validation = tuple([side[row] for row in kept] for side in self.validation)
            self.images[recipe.validation] = rows_of(self.images.get(recipe.validation), kept)
        with naming(self.corpus, recipe.validation, recipe.source):
            translator.tokenize_source(self.validation[0], recipe.truncate)  # raises now if one is too long
        return translator

    def _translator(self, folder: Path) -> keras.Model:
        recipe = self.recipe
        if not is_builder(recipe.preset):
            return direction(load_start(recipe, folder), recipe.source, recipe.target)
        tokenizers = self.learn(folder)
        vocabularies = tokenizers[: 1 if shares_vocabulary(recipe) else 2]
        translator = build(recipe.preset, *vocabularies, dtype=recipe.precision, **recipe.model)
        translator.target_tokenizer = tokenizers[-1]
        translator.source_language, translator.target_language = recipe.source, recipe.target
        return translator

    def batches(self, translator: keras.Model) -> Batches | ShardedBatches:
        """Return the training batches."""
        if self.shards is None:
            return self._batches(translator, self.pairs, "train")
        recipe, most = self.recipe, translator.backbone.max_length
        batches = ShardedBatches(
            self.shards, recipe.tokens, recipe.num_shapes, recipe.seed, most, recipe.too_long
        )
        if batches.dropped:
            print_dropped("train", batches.dropped, self.shards.pairs, min(most, recipe.tokens))
        return batches

    def train_decoder(
        self,
        translator: keras.Model,
        batches: Batches,
        folder: Path,
        verbose: str | int,
        preemption: Preemption,
    ):
        """Train the decoder as a language model, before the translator."""
        validation = self._batches(translator, self.validation, self.recipe.validation)
        epochs = self.recipe.language_model_epochs
        train_language_model(translator, batches, validation, epochs, folder, preemption, verbose)

    def _batches(self, translator: keras.Model, pairs: tuple[list[str], list[str]], split: str) -> Batches:
        recipe, most, images = self.recipe, translator.backbone.max_length, self.images.get(split)
        longest = min(most, recipe.tokens)
        tokenizers = (translator.source_tokenizer, translator.target_tokenizer)
        sides = [tokenizer(text) for tokenizer, text in zip(tokenizers, pairs, strict=True)]
        if split == "train":
            languages = recipe.source, recipe.target
            self.unknown = {
                language: unknown_characters(*side, UNKNOWN)
                for language, *side in zip(languages, pairs, sides, tokenizers, strict=True)
            }
        if recipe.truncate:
            sides = [[words[: longest - 1] for words in side] for side in sides]
        elif recipe.too_long == "drop":
            kept = kept_rows(split, sides, longest)
            sides, images = [[side[row] for row in kept] for side in sides], rows_of(images, kept)
        with naming(self.corpus, split, recipe.source, recipe.target):
            return Batches(
                *sides,
                recipe.tokens,
                recipe.num_shapes,
                recipe.seed,
                max_length=most,
                images=images,
            )

    def score(self, translator: keras.Model) -> keras.callbacks.Callback:
        """Return the callback that scores an epoch's model on the validation split."""
        recipe, (source, target) = self.recipe, self.validation
        images, lowercase = self.images.get(recipe.validation), translator.target_tokenizer.lowercases
        return TranslationScore(source, target, recipe.target, recipe.truncate, images, lowercase)


def run_extractor(folder: Path, images) -> dict | None:
    """Return the fields of the `Extractor` that computed a run's features; `None` for pictures.

    Args:
        folder: the run's folder; `extractor.json` there records the extractor that it began with, which is
            fixed from its first checkpoint on.
        images: images of the training split.

    Raises:
        UserError: that file is damaged.
    """
    path = folder / "extractor.json"
    if not hasattr(images, "extractor"):
        return None
    if not (path.exists() and saved_in(folder / "checkpoints")):
        write_json(path, dataclasses.asdict(images.extractor))
    try:
        return dataclasses.asdict(Extractor(**json.loads(path.read_text(encoding="utf-8"))))
    except (ValueError, TypeError):
        raise UserError(
            f"{path} does not name an extractor: put back the file that the run began with"
        ) from None


def recipe_shards(recipe: Recipe) -> Shards:
    """Return the recipe's shards.

    Raises:
        UserError: there are none, they are damaged, or they were made for other languages or vocabularies.
    """
    shards = Shards(recipe.shards)
    shards.require(**shard_settings(recipe))
    return shards


def shard_settings(recipe: Recipe) -> dict:
    """Return what shards for the recipe depend on, apart from the text.

    Raises:
        UserError: the recipe's text has a form that shards cannot have.
    """
    if recipe.text != "raw":
        raise UserError(f"shards hold raw text, but the recipe's is {recipe.text}: leave text or shards out")
    names = ("source", "target", "vocabulary_size", "joint_vocabulary", "source_characters")
    return {name: getattr(recipe, name) for name in names}


def learned_tokenizers(recipe: Recipe, folder: Path, source: Iterable[str], target: list[str]) -> list:
    """Return the recipe's tokenizers, one for each side or one for both.

    Text in Moses's form has one for each side even with a shared vocabulary, because the languages differ.

    Args:
        recipe: the recipe.
        folder: where their vocabularies are or will be stored.
        source: sentences that they are learned from if there are none yet.
        target: their translations.
    """
    size = recipe.vocabulary_size
    if recipe.source_characters:
        characters = learned_characters(folder, source, recipe.source_characters)
        return [
            characters,
            learned_subwords(folder, "target", target, size, recipe.text, recipe.target),
        ]
    if recipe.joint_vocabulary and recipe.text == "raw":
        return [learned_subwords(folder, "joint", [*source, *target], size)]
    sides = {"source": (recipe.source, source), "target": (recipe.target, target)}
    if recipe.joint_vocabulary:
        return shared_subwords(folder, "joint", sides, size, recipe.text)
    return [
        learned_subwords(folder, side, sentences, size, recipe.text, language)
        for side, (language, sentences) in sides.items()
    ]


def shares_vocabulary(recipe: Recipe) -> bool:
    """Return whether source and target share a vocabulary, and thus one embedding matrix."""
    return recipe.joint_vocabulary and not recipe.source_characters
