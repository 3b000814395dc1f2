"""Scores on a validation set: BLEU and chrF2 after each epoch; after training, a threshold for low scores."""

import contextlib
import time
import warnings

import keras
import numpy as np
from sacrebleu.metrics import CHRF

from kzoo.data import FeatureFile
from kzoo.decoding import SearchSettings, TextTranslator
from kzoo.engine.choice import differing_settings, why_not
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.hub.preset import direction_key
from kzoo.layers import GlyphEmbedding
from kzoo.layers.multi_head_attention import on_gpu
from kzoo.models import TransformerBackbone
from kzoo.text.bleu import bleu_metric
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading, UnknownCharactersWarning, lacking_line

MOST_WEIGHTS = 100_000_000  # of a model that is held twice to score it


class TranslationScore(keras.callbacks.Callback):
    """Translates a validation set greedily after each epoch; logs sacreBLEU's `val_bleu` and `val_chrf2`.

    Place it before the callbacks that read the log.

    Args:
        readings: the source sentences as the translator reads them, from its `sentences_read`.
        target: their references.
        language: language of the references, which decides BLEU's tokenizer.
        direction: what the translator's `direction` returns.
        images: one image per source sentence, for a model that reads images, in its input format.
        lowercase: ignore case in scoring, for models that output lower case.

    Warns:
        UnknownCharactersWarning: sentences have characters that the vocabulary lacks.

    Example:

    >>> translator = kzoo.presets.load("pope_small_multi30k_en_de")
    >>> direction = translator.direction()
    >>> readings = translator.sentences_read(["A dog runs."], direction)
    >>> score = TranslationScore(readings, ["Ein Hund rennt."], "de", direction)  # a callback for `fit`
    >>> [round(value) for value in score.scores(translator)]
    [100, 100]
    """

    def __init__(
        self,
        readings: list[Reading],
        target: list[str],
        language: str,
        direction: Direction,
        images: np.ndarray | FeatureFile | None = None,
        lowercase: bool = False,
    ):
        super().__init__()
        self.readings, self.target, self.language = readings, target, language
        self.direction, self.images, self.lowercase = direction, images, lowercase
        if line := lacking_line([reading for reading in readings if reading.lacking], len(readings)):
            warnings.warn(line, UnknownCharactersWarning, stacklevel=2)

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        logs["val_bleu"], logs["val_chrf2"] = self.scores(on_fastest_engine(self.model))
        logs["val_seconds"] = time.perf_counter() - start

    def on_train_end(self, logs=None):
        for layer in self.model.backbone.layers:
            if isinstance(layer, GlyphEmbedding):
                layer.empty()  # an optimizer with `use_ema` has replaced the weights after the last epoch

    def scores(self, translator) -> tuple[float, float]:
        """Return BLEU and chrF2 of a translator's greedy translations."""
        found = [best.text for best in self._best(translator, translator.search.changed(beam_size=1))]
        metrics = bleu_metric(self.language, self.lowercase), CHRF(lowercase=self.lowercase)
        return tuple(metric.corpus_score(found, [self.target]).score for metric in metrics)

    def low_score(self, translator) -> float:
        """Return the 5th percentile of the translations' scores. A text that scores lower is unlike the data.

        Uses the translator's own search settings, because a larger beam finds higher scores.
        """
        found = self._best(translator, translator.search)
        return round(float(np.percentile([best.score for best in found], 5)), 4)

    def low_scores(self, translator) -> dict[str, float]:
        """Return `low_score` by direction."""
        return {direction_key(*self.direction): self.low_score(on_fastest_engine(translator))}

    def _best(self, translator, search: SearchSettings) -> list[Hypothesis]:
        """Return the best translation of each sentence."""
        found = translator.n_best_of_readings(self.readings, 1, search, self.direction, images=self.images)
        return [best for (best,) in found]


class DirectionScores(keras.callbacks.Callback):
    """Translates a validation set greedily in each direction after each epoch.

    Logs sacreBLEU's BLEU of each direction as, for example, `val_bleu_de_fr`, and the means of BLEU and chrF2
    over directions between different languages as `val_bleu` and `val_chrf2`.

    Args:
        directions: the `TranslationScore` of each pair of a source and a target language.
    """

    def __init__(self, directions: dict[tuple[str, str], TranslationScore]):
        super().__init__()
        self.directions = directions

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        translator = on_fastest_engine(self.model)
        found = {pair: score.scores(translator) for pair, score in self.directions.items()}
        logs |= {f"val_bleu_{source}_{target}": bleu for (source, target), (bleu, _) in found.items()}
        translating = [scores for (source, target), scores in found.items() if source != target]
        logs["val_bleu"], logs["val_chrf2"] = np.mean(translating, axis=0).tolist()
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator) -> dict[str, float]:
        """Return `TranslationScore.low_score` by direction."""
        translator = on_fastest_engine(translator)
        found = [score.low_scores(translator) for score in self.directions.values()]
        return {key: low for one in found for key, low in one.items()}


def on_fastest_engine(translator) -> TextTranslator:
    """Return a translator as CTranslate2 runs it, on a CPU and if it translates the same; else itself.

    Keras compiles its search for each shape of batches, which takes longer than a tiny model's epoch of 5,000
    pairs.
    """
    backbone, search = getattr(translator, "backbone", None), translator.search
    small = isinstance(backbone, TransformerBackbone) and backbone.count_params() <= MOST_WEIGHTS
    if small and not (on_gpu() or differing_settings(search) or why_not(search=search)):
        with contextlib.suppress(UserError, OSError):  # not for this kind of model; no space for its files
            return CTranslate2Translator.of(translator, device="cpu")
    return translator
