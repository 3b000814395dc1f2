"""Scores on a validation set: BLEU and chrF2 after each epoch; after training, a threshold for low scores."""

import time
import warnings

import keras
import numpy as np
from sacrebleu.metrics import CHRF

from kzoo.data import FeatureFile
from kzoo.decoding import SearchSettings
from kzoo.decoding.text_reader import Prepared
from kzoo.hub.preset import direction_key
from kzoo.text.bleu import bleu_metric
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import Direction
from kzoo.text.reading import Reading, UnknownCharactersWarning, lacking_line
from kzoo.text.sentences import SplitTexts


class TranslationScore(keras.callbacks.Callback):
    """Translates a validation set greedily after each epoch; logs sacreBLEU's `val_bleu` and `val_chrf2`.

    The set is read once. Place it before the callbacks that read the log.

    Args:
        source: source sentences.
        target: their references.
        language: language of the references, which decides BLEU's tokenizer.
        truncate: cut sentences that are too long for the model; otherwise, they raise an error.
        images: one image per source sentence, for a model that reads images.
        lowercase: ignore case in scoring, for models that output lower case.
        direction: a multilingual model's source and target language.
        readings: the sources as the translator reads them, with `images` that fit it; by default, it reads
            them when it first translates.
    """

    def __init__(
        self,
        source: list[str],
        target: list[str],
        language: str,
        truncate: bool = False,
        images: np.ndarray | FeatureFile | None = None,
        lowercase: bool = False,
        direction: Direction = (None, None),
        readings: list[Reading] | None = None,
    ):
        super().__init__()
        self.source, self.target, self.language = source, target, language
        self.truncate, self.images, self.lowercase, self.direction = truncate, images, lowercase, direction
        self._readings, self._prepared = readings, None

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        logs["val_bleu"], logs["val_chrf2"] = self.scores(self.model)
        logs["val_seconds"] = time.perf_counter() - start

    def on_train_end(self, logs=None):
        for layer in self.model.backbone.layers:
            if hasattr(layer, "empty"):
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
        return {direction_key(*translator.languages): self.low_score(translator)}

    def _best(self, translator, search: SearchSettings) -> list[Hypothesis]:
        """Return the best translation of each sentence."""
        direction = translator.direction(*self.direction)
        if self._prepared is None:
            directions = [direction] * len(self.source)
            split = SplitTexts(self.source, directions, False, translator.codes_in_text)
            if self._readings is None:
                self._prepared = translator.prepared(split, search, self.truncate, self.images)
            else:
                self._prepared = Prepared(split, self._readings, self.images, None)
            readings = self._prepared.readings
            if line := lacking_line([reading for reading in readings if reading.lacking], len(readings)):
                warnings.warn(line, UnknownCharactersWarning, stacklevel=2)
        return [best for (best,) in translator.n_best_of_prepared(self._prepared, 1, search, direction)]


class DirectionScores(keras.callbacks.Callback):
    """Translates a validation set greedily in each direction after each epoch.

    Logs sacreBLEU's BLEU of each direction as, for example, `val_bleu_de_fr`, and the means of BLEU and chrF2
    over directions between different languages as `val_bleu` and `val_chrf2`.

    Args:
        text: for each language, its sentences; all are aligned.
        directions: (source, target) languages.
        truncate, lowercase: as in `TranslationScore`.
        readings: for each language, its sentences as the translator reads them; by default, it reads them
            when it first translates.
    """

    def __init__(
        self,
        text: dict[str, list[str]],
        directions: list[tuple[str, str]],
        truncate: bool = False,
        lowercase: bool = False,
        readings: dict[str, list[Reading]] | None = None,
    ):
        super().__init__()
        self.directions = {}
        for source, target in directions:
            others = truncate, None, lowercase, (source, target), readings and readings[source]
            score = TranslationScore(text[source], text[target], target, *others)
            self.directions[source, target] = score

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        found = {pair: score.scores(self.model) for pair, score in self.directions.items()}
        logs |= {f"val_bleu_{source}_{target}": bleu for (source, target), (bleu, _) in found.items()}
        translating = [scores for (source, target), scores in found.items() if source != target]
        logs["val_bleu"], logs["val_chrf2"] = np.mean(translating, axis=0).tolist()
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator) -> dict[str, float]:
        """Return `TranslationScore.low_score` by direction."""
        return {direction_key(*pair): score.low_score(translator) for pair, score in self.directions.items()}
