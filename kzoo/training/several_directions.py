"""Prepares a run of several directions of aligned text: vocabularies, model, batches, validation scores."""

import dataclasses
from collections.abc import Sequence
from typing import Self

import keras

from kzoo.data import Corpus, PairBatches
from kzoo.models import LabelSmoothedCrossEntropy, SentenceCrossEntropy
from kzoo.presets import build
from kzoo.training.capitals import with_capitals
from kzoo.training.corpus import recipe_directions, recipe_weights, text_languages
from kzoo.training.long_sentences import counts_of, cut_or_kept, kept_rows, rows_of
from kzoo.training.prepared_run import Task, Validation
from kzoo.training.recipe import Recipe
from kzoo.training.validation import DirectionScores, TranslationScore
from kzoo.training.vocabularies import learned_subwords


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
