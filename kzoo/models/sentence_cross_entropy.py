"""Cross-entropy in which all sentences count the same, however long."""

import keras
from keras import ops

from kzoo.models.label_smoothed_cross_entropy import LabelSmoothedCrossEntropy, token_weights

IN_FLOAT16 = -6e4  # float16 cannot hold -1e9


def never(dtype: str) -> float:
    """Return the logit, for a data type, of a token that the language lacks."""
    return IN_FLOAT16 if dtype == "float16" else -1e9


@keras.saving.register_keras_serializable("kzoo")
class SentenceCrossEntropy(LabelSmoothedCrossEntropy):
    """Cross-entropy summed over a sentence's tokens, averaged over sentences: −log P(target | source).

    This gives the balance of Vázquez et al. 2019, Eq. 3, with one penalty per sentence. A row whose sample
    weights are all 0 is not a sentence and does not count. Tokens that the language lacks, whose logit is
    `never(dtype)`, get no share of ε.

    Args:
        label_smoothing: float. ε, as in `LabelSmoothedCrossEntropy`. Defaults to `0`.
        name: str.

    Call arguments:
        y_true: int `(B, T)`. Token ids.
        y_pred: `(B, T, V)`. Logits.
        sample_weight: `(B, T)`; by default 1 at tokens and 0 at padding, label 0.

    Raises:
        ValueError: weights that are not of tokens.
    """

    def __init__(self, label_smoothing: float = 0.0, name: str = "sentence_cross_entropy", **kwargs):
        super().__init__(label_smoothing, name, **kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is None:
            sample_weight = token_weights(y_true)
        weights = ops.cast(sample_weight, "float32")
        # Computed from the mean over tokens, because Keras handles only means correctly on several replicas.
        mean = super().__call__(y_true, y_pred, weights)
        return mean * ops.cast(ops.divide_no_nan(ops.sum(weights), self.count(weights)), mean.dtype)

    def mean_over_vocabulary(self, logits):
        present = ops.cast(ops.greater(logits, IN_FLOAT16 / 2), "float32")
        return ops.sum(logits * present, axis=-1) / ops.sum(present, axis=-1)

    def count(self, weights):
        """Return how many sentences with token weights `(B, T)` the mean is over."""
        return ops.sum(ops.cast(ops.any(ops.greater(weights, 0), axis=-1), "float32"))
