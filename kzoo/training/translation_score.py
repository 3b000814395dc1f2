"""BLEU on a validation set, during training."""

import time

import keras
import sacrebleu


class TranslationScore(keras.callbacks.Callback):
    """Translates a validation set greedily after each epoch and logs sacreBLEU's BLEU as `val_bleu`.

    Stand it before the callbacks that read the log.

    Args:
        source: source sentences.
        target: their references.
    """

    def __init__(self, source: list[str], target: list[str]):
        super().__init__()
        self.source, self.target = source, target

    def on_epoch_end(self, epoch, logs=None):
        start = time.perf_counter()
        translations = self.model.translate(self.source, beam_size=1, truncate=True)
        logs["val_bleu"] = sacrebleu.corpus_bleu(translations, [self.target]).score
        logs["val_seconds"] = time.perf_counter() - start
