"""BLEU on a validation set after each epoch of training; which scores of translations are low, at its end."""

import time

import keras
import numpy as np

from kzoo.data import FeatureFile
from kzoo.evaluation.scores import bleu_metric
from kzoo.presets.description import direction_key
from kzoo.text.texts import Hypothesis


class TranslationScore(keras.callbacks.Callback):
    """Translates a validation set greedily after each epoch and logs sacreBLEU's BLEU as `val_bleu`.

    Place it before the callbacks that read the log.

    Args:
        source: source sentences.
        target: their references.
        language: language of the references, which decides BLEU's tokenizer.
        truncate: cut sentences that are too long for the model; otherwise an error.
        images: images of the source sentences, for a model that reads them.
        lowercase: ignore case in scoring, for models that write lower case.
    """

    def __init__(
        self,
        source: list[str],
        target: list[str],
        language: str,
        truncate: bool = False,
        images: np.ndarray | FeatureFile | None = None,
        lowercase: bool = False,
    ):
        super().__init__()
        self.source, self.target = source, target
        self.metric, self.truncate, self.images = bleu_metric(language, lowercase), truncate, images

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        shown = {} if self.images is None else {"images": self.images}
        translations = self.model.translate(
            self.source, beam_size=1, truncate=self.truncate, split_sentences=False, **shown
        )
        logs["val_bleu"] = self.metric.corpus_score(translations, [self.target]).score
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator: keras.Model) -> dict[str, float]:
        """Return `low_score` of the translations of the validation set, by direction."""
        shown = {} if self.images is None else {"images": self.images}
        found = translator.n_best(self.source, 1, truncate=self.truncate, split_sentences=False, **shown)
        return {direction_key(*translator.languages): low_score(found)}


class DirectionScores(keras.callbacks.Callback):
    """Translates a validation set greedily in each direction after each epoch.

    Logs sacreBLEU's BLEU of each direction as, for example, `val_bleu_de_fr`, and the mean over directions
    between two languages as `val_bleu`.

    Args:
        text: for each language, its sentences; all are aligned.
        pairs: (source, target) directions.
        truncate: cut sentences that are too long for the model; otherwise an error.
        lowercase: ignore case in scoring, for models that write lower case.
    """

    def __init__(
        self,
        text: dict[str, list[str]],
        pairs: list[tuple[str, str]],
        truncate: bool = False,
        lowercase: bool = False,
    ):
        super().__init__()
        self.text, self.pairs, self.truncate, self.lowercase = text, pairs, truncate, lowercase

    def on_epoch_end(self, epoch, logs=None):
        start, scores = time.perf_counter(), {}
        for source, target in self.pairs:
            translations = self.model.translate(
                self.text[source],
                source,
                target,
                beam_size=1,
                truncate=self.truncate,
                split_sentences=False,
            )
            metric = bleu_metric(target, self.lowercase)
            scores[source, target] = metric.corpus_score(translations, [self.text[target]]).score
            logs[f"val_bleu_{source}_{target}"] = scores[source, target]
        between = [score for (source, target), score in scores.items() if source != target]
        logs["val_bleu"] = sum(between) / len(between)
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator: keras.Model) -> dict[str, float]:
        """Return `low_score` of the translations of the validation set, by direction."""
        options = {"truncate": self.truncate, "split_sentences": False}
        return {
            direction_key(*pair): low_score(translator.n_best(self.text[pair[0]], *pair, 1, **options))
            for pair in self.pairs
        }


def low_score(found: list[list[Hypothesis]]) -> float:
    """Return the 5th percentile of the best translations' scores: below it, a text is unlike the data."""
    return round(float(np.percentile([best[0].score for best in found], 5)), 4)
