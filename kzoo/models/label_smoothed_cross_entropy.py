"""The loss of a translator: label-smoothed cross-entropy."""

import keras
from keras import ops

from kzoo.text.tokenizers import PAD


@keras.saving.register_keras_serializable("kzoo")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy against the true token mixed with the uniform distribution; a mean over a batch's tokens.

        loss = -(1 - ε) log p(y) - ε · mean over the vocabulary of log p

    The mean is over real tokens: the weight of padding is 0. Over several batches, what Keras's `fit` and
    `evaluate` print is the mean by rows, in which batches of short sentences count more.

    Args:
        label_smoothing: float. ε. Defaults to `0.1`.
        name: str.

    Call arguments:
        y_true: int `(B, T)`. Token ids.
        y_pred: `(B, T, V)`. Logits.
        sample_weight: `(B, T)`; by default 1 at tokens and 0 at padding, label 0.

    Raises:
        ValueError: weights that are not of tokens.

    Reference:
        Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision", Section 7.
        https://arxiv.org/abs/1512.00567
    """

    def __init__(self, label_smoothing: float = 0.1, name: str = "label_smoothed_cross_entropy", **kwargs):
        super().__init__(name=name, **{"reduction": "mean_with_sample_weight", **kwargs})
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        if sample_weight is None:
            sample_weight = token_weights(y_true)
        shape = tuple(ops.convert_to_tensor(sample_weight).shape)
        if len(shape) != 2:
            raise ValueError(f"{self.name} takes a weight for each token, (B, T), 0 at padding; not {shape}")
        return super().__call__(y_true, y_pred, sample_weight)

    def count(self, weights):
        """Return how many tokens with these weights `(B, T)` the mean is over."""
        return ops.sum(weights)

    def call(self, y_true, y_pred):
        logits = ops.cast(y_pred, "float32")
        log_total = ops.logsumexp(logits, axis=-1)  # (B, T)
        labels = ops.cast(y_true, "int32")[..., None]
        true_word = ops.take_along_axis(logits, labels, axis=-1)[..., 0]
        smooth = self.label_smoothing
        if not smooth:
            return log_total - true_word
        return log_total - (1 - smooth) * true_word - smooth * self.mean_over_vocabulary(logits)

    def mean_over_vocabulary(self, logits):
        """Return `(B, T)`, the mean logit over the vocabulary."""
        return ops.mean(logits, axis=-1)

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


def token_weights(labels):
    """Return the weights of labels `(B, T)`: 1 at tokens, 0 at padding."""
    return ops.cast(ops.not_equal(labels, PAD), "float32")
