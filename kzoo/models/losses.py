"""The translators' losses, and a mixin that makes them independent of the number of devices."""

import keras
import numpy as np
from keras import ops

from kzoo.layers.normalization import mean_over_replicas
from kzoo.text.vocabulary import PAD

IN_FLOAT16 = -6e4  # float16 cannot hold -1e9
MEAN = "mean_with_sample_weight"  # Keras's name of this reduction


@keras.saving.register_keras_serializable("kzoo")
class LabelSmoothedCrossEntropy(keras.losses.Loss):
    """Cross-entropy with label smoothing, averaged over the tokens of a batch.

        loss = -(1 - ε) log p(y) - ε · mean over the vocabulary of log p

    The mean is over real tokens: the weight of padding is 0. Over several batches, Keras's `fit` and
    `evaluate` weight each batch by its rows, so batches of short sentences count more. For models with an
    attention bridge, use `SentenceCrossEntropy`: this loss gives tokens that a language lacks a share of ε.

    Args:
        label_smoothing: float. ε. Defaults to `0.1`.
        name: str.

    Call arguments:
        y_true: int `(B, T)`. Token ids; an id outside the vocabulary makes the loss NaN.
        y_pred: `(B, T, V)`. Logits.
        sample_weight: `(B, T)`; by default 1 at tokens and 0 at padding (label 0).

    Raises:
        ValueError: weights that are not one per token.

    Reference:
        Szegedy et al. 2016, "Rethinking the Inception Architecture for Computer Vision", Section 7.
        https://arxiv.org/abs/1512.00567
    """

    def __init__(self, label_smoothing: float = 0.1, name: str = "label_smoothed_cross_entropy", **kwargs):
        # float32 whatever `keras.config.floatx()`: Keras casts labels to it, and bfloat16 has no 257.
        super().__init__(name=name, **{"reduction": MEAN, "dtype": "float32", **kwargs})
        self.label_smoothing = label_smoothing

    def __call__(self, y_true, y_pred, sample_weight=None):
        weights = token_weights(y_true, sample_weight)
        shape = tuple(ops.convert_to_tensor(weights).shape)
        if len(shape) != 2:
            raise ValueError(f"{self.name} takes a weight for each token, (B, T), 0 at padding; not {shape}")
        return super().__call__(y_true, y_pred, weights)

    def count(self, weights):
        """Return the number of tokens that the mean is over, given their weights `(B, T)`."""
        return ops.sum(weights)

    def call(self, y_true, y_pred):
        logits = ops.cast(y_pred, "float32")
        # Not a gather, whose gradient is scattered into an array of the logits' size. Compiled, loss and
        # gradient take 0.18 of the time of a gather on TensorFlow without XLA, 0.8 to 1 with XLA.
        labels = ops.cast(y_true, "int32")[..., None]
        is_label = ops.equal(ops.arange(logits.shape[-1], dtype="int32"), labels)
        shares = ops.where(is_label, np.float32(1 - self.label_smoothing), np.float32(0))
        if self.label_smoothing:
            shares = shares + self.label_smoothing * self._uniform(logits)
        # Skip logits without a share: 0 × -inf would be NaN.
        shared = ops.sum(ops.where(shares > 0, shares * logits, 0.0), axis=-1)
        known = (labels[..., 0] >= 0) & (labels[..., 0] < logits.shape[-1])
        return ops.where(known, ops.logsumexp(logits, axis=-1) - shared, float("nan"))  # (B, T)

    def _uniform(self, logits):
        """Return the uniform distribution over the vocabulary, broadcast to `(B, T, V)`."""
        return 1 / logits.shape[-1]

    def get_config(self):
        return {**super().get_config(), "label_smoothing": self.label_smoothing}


@keras.saving.register_keras_serializable("kzoo")
class SentenceCrossEntropy(LabelSmoothedCrossEntropy):
    """Cross-entropy summed over a sentence's tokens, averaged over sentences: −log P(target | source).

    This balances loss and penalty as in Vázquez et al. 2019, Eq. 3: one penalty per sentence. Rows whose
    sample weights are all 0 do not count as sentences. Tokens that the language lacks, with the logit
    `never(dtype)`, get no share of ε.

    Args:
        label_smoothing: float. ε, as in `LabelSmoothedCrossEntropy`. Defaults to `0`.
        name: str.

    Call arguments:
        y_true: int `(B, T)`. Token ids.
        y_pred: `(B, T, V)`. Logits.
        sample_weight: `(B, T)`; by default 1 at tokens and 0 at padding (label 0).

    Raises:
        ValueError: weights that are not one per token.
    """

    def __init__(self, label_smoothing: float = 0.0, name: str = "sentence_cross_entropy", **kwargs):
        super().__init__(label_smoothing, name, **kwargs)

    def __call__(self, y_true, y_pred, sample_weight=None):
        weights = ops.cast(token_weights(y_true, sample_weight), "float32")
        # Computed from the mean over tokens, because Keras handles only means correctly on several replicas.
        mean = super().__call__(y_true, y_pred, weights)
        if self.reduction != MEAN:
            return mean  # a sum, or a number for each token
        return mean * ops.cast(ops.divide_no_nan(ops.sum(weights), self.count(weights)), mean.dtype)

    def _uniform(self, logits):
        present = ops.cast(ops.greater(logits, IN_FLOAT16 / 2), "float32")
        return present / ops.sum(present, axis=-1, keepdims=True)

    def count(self, weights):
        """Return the number of sentences that the mean is over, given the token weights `(B, T)`."""
        return ops.sum(ops.cast(ops.any(ops.greater(weights, 0), axis=-1), "float32"))


@keras.saving.register_keras_serializable("kzoo")
class ConsistentCrossEntropy(LabelSmoothedCrossEntropy):
    """R-Drop: label-smoothed cross-entropy plus the divergence between a pair's two copies in a batch.

        loss = ½ (CE(p) + CE(q)) + ¼ α (KL(p ‖ q) + KL(q ‖ p))

    p and q are the predictions for the two copies of a pair, which differ by dropout. This is half of
    R-Drop's sum, so that α = 0 is plain cross-entropy. Rows that are no copies, as when `evaluate` reads
    plain batches, have no divergence.

    Args:
        label_smoothing: float. ε, as in `LabelSmoothedCrossEntropy`. Defaults to `0.1`.
        consistency: float. α. Defaults to `5`.
        name: str.

    Call arguments:
        y_true: int `(2B, T)`. Token ids; rows 2i and 2i + 1 are the same, as in `kzoo.data.TwiceEachRow`.
        y_pred: `(2B, T, V)`. Logits.
        sample_weight: `(2B, T)`; by default 1 at tokens and 0 at padding (label 0).

    Reference:
        Liang et al. 2021, "R-Drop: Regularized Dropout for Neural Networks", Eq. 4.
        https://arxiv.org/abs/2106.14448
    """

    def __init__(
        self,
        label_smoothing: float = 0.1,
        consistency: float = 5.0,
        name: str = "consistent_cross_entropy",
        **kwargs,
    ):
        super().__init__(label_smoothing, name, **kwargs)
        self.consistency = consistency

    def call(self, y_true, y_pred):
        log_p = ops.log_softmax(ops.cast(y_pred, "float32"), axis=-1)  # (2B, T, V)
        paired = ops.shape(log_p)[0] // 2 * 2  # there may be a last row without a copy
        first, second = log_p[0:paired:2], log_p[1:paired:2]
        divergence = ops.sum((ops.exp(first) - ops.exp(second)) * (first - second), axis=-1)  # (B, T)
        copies = ops.all(ops.equal(y_true[0:paired:2], y_true[1:paired:2]), axis=-1, keepdims=True)
        divergence = ops.repeat(ops.where(copies, divergence, 0.0), 2, axis=0)
        divergence = ops.concatenate([divergence, ops.zeros_like(log_p[paired:, :, 0])])
        return super().call(y_true, y_pred) + self.consistency / 4 * divergence

    def get_config(self):
        return {**super().get_config(), "consistency": self.consistency}


class WholeBatchLoss:
    """Mixin that makes the loss independent of how a batch is split among replicas.

    `tf.distribute` lets each replica compute the loss of its rows, and takes the mean of these losses. If the
    loss is a mean over tokens, the tokens of a replica with few of them count too much. So each replica's
    loss, penalties included, is weighted by its share of the tokens or sentences that the mean is over:
    `loss.count(weights)`, if the compiled loss has this method and is such a mean. Penalties are means
    over sentences; a model with penalties needs a loss that is a mean over sentences too. The loss that Keras
    reports is exact if all replicas have equally many rows.

    The weighting happens here, not in the loss: a replica that waits for others before Keras has collected
    its penalties would also collect theirs.
    """

    def make_train_function(self, force=False):
        # Or the first step would make the optimizer's variables, and TensorFlow would trace it twice.
        if not self.optimizer.built:
            self.optimizer.build(self.trainable_variables)
        return super().make_train_function(force)

    def compute_loss(self, x=None, y=None, y_pred=None, sample_weight=None, training=True):
        loss = super().compute_loss(x, y, y_pred, sample_weight, training)
        # A loss may also be a string or a list, which have Python's own `count`.
        if getattr(self.loss, "reduction", None) != MEAN or not hasattr(self.loss, "count"):
            return loss
        own = self.loss.count(ops.cast(token_weights(y, sample_weight), "float32"))
        return loss * ops.cast(ops.divide_no_nan(own, mean_over_replicas(own)), loss.dtype)


def token_weights(labels, given=None):
    """Return the weights of labels `(B, T)`: those given, by default 1 at tokens and 0 at padding."""
    return ops.cast(ops.not_equal(labels, PAD), "float32") if given is None else given


def never(dtype: str) -> float:
    """Return the logit of tokens that a language lacks, for a data type."""
    return IN_FLOAT16 if dtype == "float16" else -1e9
