"""BLEU on a validation set, during training."""

import time

import keras
import numpy as np

from kzoo.data import FeatureFile
from kzoo.evaluation.scores import bleu_metric


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
