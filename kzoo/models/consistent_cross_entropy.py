"""R-Drop: a loss that also asks two passes with different dropout for the same predictions."""

import keras
from keras import ops

from kzoo.models.label_smoothed_cross_entropy import LabelSmoothedCrossEntropy


@keras.saving.register_keras_serializable("kzoo")
class ConsistentCrossEntropy(LabelSmoothedCrossEntropy):
    """Label-smoothed cross-entropy of sentence pairs that stand twice in a batch, plus their disagreement.

        loss = ½ (CE(p) + CE(q)) + ¼ α (KL(p ‖ q) + KL(q ‖ p))

    p and q are the predictions for the two copies of a pair, which differ by dropout. This is half of
    R-Drop's sum, so that α = 0 is plain cross-entropy.

    Args:
        label_smoothing: float. ε, as in `LabelSmoothedCrossEntropy`. Defaults to `0.1`.
        consistency: float. α. Defaults to `5`.
        name: str.

    Call arguments:
        y_true: int `(2B, T)`. Token ids; rows 2i and 2i + 1 are the same, as in `kzoo.data.TwiceEachRow`.
        y_pred: `(2B, T, V)`. Logits.
        sample_weight: `(2B, T)`; by default 1 at tokens and 0 at padding, label 0.

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
        first, second = log_p[0::2], log_p[1::2]
        divergence = ops.sum((ops.exp(first) - ops.exp(second)) * (first - second), axis=-1)  # (B, T)
        return super().call(y_true, y_pred) + self.consistency / 4 * ops.repeat(divergence, 2, axis=0)

    def get_config(self):
        return {**super().get_config(), "consistency": self.consistency}
