"""What training in several directions needs: aligned sentences, tokenizers, a model, batches, scores."""

from pathlib import Path

import keras

from kzoo.data import Corpus, PairBatches
from kzoo.data.language_pairs import two_languages
from kzoo.data.pair_batches import check_weights
from kzoo.data.unknown_characters import unknown_characters
from kzoo.models import SentenceCrossEntropy
from kzoo.presets import build
from kzoo.presets.shelf import is_builder
from kzoo.text import UNKNOWN
from kzoo.training.direction_scores import DirectionScores
from kzoo.training.long_pairs import kept_rows
from kzoo.training.optimizers import make_optimizer
from kzoo.training.recipe import Recipe, check_same_languages
from kzoo.training.recipe_corpus import naming, recipe_directions, text_languages
from kzoo.training.starting_preset import load_start
from kzoo.training.vocabularies import learned_subwords


class MultilingualTask:
    """A recipe with `languages`: one model for the pairs among them.

    Args:
        recipe: the recipe.
        corpus: what it trains on; its sentences are aligned across all the languages.
    """

    def __init__(self, recipe: Recipe, corpus: Corpus):
        self.recipe, self.corpus = recipe, corpus
        self.pairs, self.unknown = recipe_directions(recipe), {}
        self.weights = {
            two_languages(pair, recipe.languages): weight for pair, weight in recipe.pair_weights.items()
        }
        if self.weights:
            check_weights(self.weights, self.pairs)
        for source, target in self.pairs:
            for split in ("train", recipe.validation):
                corpus.pairs(split, source, target)  # raises an error that names both files if not aligned
        self.train, self.validation = (
            {language: corpus.sentences(split, language) for language in text_languages(recipe)}
            for split in ("train", recipe.validation)
        )

    def learn(self, folder: Path) -> dict:
        """Return the tokenizers of the run in `folder`, learned if necessary."""
        size, form = self.recipe.vocabulary_size, self.recipe.text
        return {
            language: learned_subwords(folder, language, text, size, form, language)
            for language, text in self.train.items()
        }

    def build(self, folder: Path) -> keras.Model:
        """Return the compiled translator of the run in `folder`."""
        recipe, translator = self.recipe, self._translator(folder)
        translator.compile(
            optimizer=make_optimizer(recipe, translator.backbone.width),
            loss=SentenceCrossEntropy(recipe.label_smoothing),
        )
        # A preset that is fine-tuned has the rest of its search.
        translator.search = translator.search.changed(
            beam_size=recipe.beam_size, length_penalty=recipe.length_penalty
        )
        if recipe.too_long == "drop":
            words = [translator.tokenizers[code](text) for code, text in self.validation.items()]
            kept = kept_rows(recipe.validation, words, translator.backbone.max_length)
            self.validation = {code: [text[row] for row in kept] for code, text in self.validation.items()}
        for language, text in self.validation.items():
            with naming(self.corpus, recipe.validation, language):
                translator.tokenize(text, language, recipe.truncate)  # raises now if one is too long
        return translator

    def _translator(self, folder: Path) -> keras.Model:
        recipe = self.recipe
        if is_builder(recipe.preset):
            return build(recipe.preset, self.learn(folder), dtype=recipe.precision, **recipe.model)
        translator = load_start(recipe, folder)
        check_same_languages(recipe, translator.languages)
        return translator

    def batches(self, translator: keras.Model) -> PairBatches:
        """Return the training batches of all pairs, in turn."""
        recipe, most = self.recipe, translator.backbone.max_length
        longest, words = most if recipe.sentences else min(most, recipe.tokens), {}
        if recipe.too_long == "drop":
            words = {code: translator.tokenizers[code](text) for code, text in self.train.items()}
            kept = kept_rows("train", list(words.values()), longest)
            self.train = {code: [text[row] for row in kept] for code, text in self.train.items()}
        for language, text in self.train.items():
            with naming(self.corpus, "train", language):
                words[language] = translator.tokenize(text, language, recipe.truncate)
            tokenizer = translator.tokenizers[language]
            self.unknown[language] = unknown_characters(text, words[language], tokenizer, UNKNOWN)
            if recipe.truncate:
                words[language] = [sentence[: longest - 1] for sentence in words[language]]
        return PairBatches(
            words,
            self.pairs,
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
        """Return the callback that scores each direction of an epoch's model on the validation split."""
        count = self.recipe.validation_sentences or None
        text = {language: sentences[:count] for language, sentences in self.validation.items()}
        lowercase = all(tokenizer.lowercases for tokenizer in translator.tokenizers.values())
        return DirectionScores(text, self.pairs, self.recipe.truncate, lowercase)
