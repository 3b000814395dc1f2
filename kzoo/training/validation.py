"""BLEU on a validation set after each epoch of training; which scores of translations are low, at its end."""

import time

import keras
import numpy as np

from kzoo.data import FeatureFile
from kzoo.evaluation.scores import bleu_metric
from kzoo.presets.description import direction_key


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
        self.source, self.target, self.language, self.lowercase = source, target, language, lowercase
        self.options = {"truncate": truncate} | ({} if images is None else {"images": images})

    def on_epoch_end(self, epoch, logs=None):
        start, text = time.perf_counter(), (self.source, self.target)
        logs["val_bleu"] = greedy_bleu(self.model, *text, self.language, self.lowercase, **self.options)
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator: keras.Model) -> dict[str, float]:
        """Return `low_score` of the translations of the validation set, by direction."""
        return {direction_key(*translator.languages): low_score(translator, self.source, **self.options)}


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
            model, text = self.model.between(source, target), (self.text[source], self.text[target])
            bleu = greedy_bleu(model, *text, target, self.lowercase, truncate=self.truncate)
            scores[source, target] = logs[f"val_bleu_{source}_{target}"] = bleu
        between = [score for (source, target), score in scores.items() if source != target]
        logs["val_bleu"] = sum(between) / len(between)
        logs["val_seconds"] = time.perf_counter() - start

    def low_scores(self, translator: keras.Model) -> dict[str, float]:
        """Return `low_score` of the translations of the validation set, by direction."""
        return {
            direction_key(source, target): low_score(
                translator.between(source, target), self.text[source], truncate=self.truncate
            )
            for source, target in self.pairs
        }


def greedy_bleu(
    model: keras.Model, source: list[str], target: list[str], language: str, lowercase: bool, **options
) -> float:
    """Return the BLEU of a model's greedy translations; `options` are further arguments of `translate`."""
    translations = model.translate(source, beam_size=1, split_sentences=False, **options)
    return bleu_metric(language, lowercase).corpus_score(translations, [target]).score


def low_score(model: keras.Model, source: list[str], **options) -> float:
    """Return the 5th percentile of the best translations' scores: below it, a text is unlike the data.

    The model searches as it does for its users, since more hypotheses find higher scores.
    """
    found = model.n_best(source, n=1, split_sentences=False, **options)
    return round(float(np.percentile([best[0].score for best in found], 5)), 4)
