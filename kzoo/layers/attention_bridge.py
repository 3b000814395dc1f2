"""The attention bridge: a sentence of any length and language as a matrix of fixed size."""

import keras
from keras import ops

from kzoo.layers.dense import Dense
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import masked_softmax


@keras.saving.register_keras_serializable("kzoo")
class AttentionBridge(Layer):
    """Structured self-attention of k heads, with a penalty that keeps the heads apart.

        A = softmax(W₂ ReLU(W₁ Hᵀ))        over the S tokens of a sentence       (Eq. 1)
        M = A H                                                                  (Eq. 2)
        penalty = ‖A Aᵀ − I‖²_F            mean over sentences, via `add_loss`   (Eq. 3)

    The authors' code differs from their paper: both maps have biases, and the norm is not squared
    (`use_bias=True, squared=False`).

    Args:
        num_heads: int. k, the rows of M. Defaults to `10`.
        hidden_dim: int. Rows of W₁. Defaults to `1024`.
        penalty_weight: float. Factor of the penalty. Defaults to `1`.
        use_bias: bool. Whether the maps have biases. Defaults to `False`.
        squared: bool. Whether the norm is squared. Defaults to `True`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, S, D)`. H, the encoder's output.
        mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default. Rows without tokens
            do not count in the penalty.
        return_attention_scores: bool. Defaults to `False`.

    Returns:
        M `(B, k, D)`; then A `(B, k, S)` if requested.

    Example:

    >>> tokens = keras.random.normal((2, 12, 64))
    >>> AttentionBridge(num_heads=10, hidden_dim=128)(tokens).shape
    (2, 10, 64)

    Reference:
        Vázquez et al. 2019, "Multilingual NMT with a Language-Independent Attention Bridge", Section 2.
        https://arxiv.org/abs/1811.00498
    """

    def __init__(
        self,
        num_heads: int = 10,
        hidden_dim: int = 1024,
        penalty_weight: float = 1.0,
        use_bias: bool = False,
        squared: bool = True,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.hidden_dim = hidden_dim
        self.penalty_weight = penalty_weight
        self.use_bias = use_bias
        self.squared = squared
        self.hidden = Dense(
            hidden_dim, activation="relu", use_bias=use_bias, dtype=self.dtype_policy, name="hidden"
        )
        self.heads = Dense(num_heads, use_bias=use_bias, dtype=self.dtype_policy, name="heads")

    def build(self, inputs_shape):
        self.hidden.build(inputs_shape)
        self.heads.build((*inputs_shape[:-1], self.hidden_dim))

    def call(self, inputs, mask=None, return_attention_scores: bool = False):
        matrix, scores = self.attend(inputs, mask)
        self.add_loss(self.penalty_weight * self._penalty(scores, mask))
        return (matrix, scores) if return_attention_scores else matrix

    def attend(self, inputs, mask=None) -> tuple:
        """Return M `(B, k, D)` and A `(B, k, S)` without adding the penalty, for translation."""
        scores = ops.swapaxes(self.heads(self.hidden(inputs)), 1, 2)  # (B, k, S)
        scores = masked_softmax(scores, None if mask is None else mask[:, None, :])
        return ops.matmul(scores, inputs), scores

    def _penalty(self, scores, mask):
        """Return the penalty (Eq. 3), averaged over sentences."""
        scores = ops.cast(scores, "float32")
        overlap = ops.matmul(scores, ops.swapaxes(scores, 1, 2)) - ops.eye(self.num_heads, dtype="float32")
        penalty = ops.sum(ops.square(overlap), axis=(1, 2))  # (B,)
        if not self.squared:
            penalty = ops.sqrt(ops.maximum(penalty, 1e-12))  # the square root's gradient is infinite at 0
        if mask is None:
            return ops.mean(penalty)
        sentences = ops.cast(ops.any(mask, axis=1), "float32")
        return ops.sum(penalty * sentences) / ops.maximum(ops.sum(sentences), 1.0)

    def compute_mask(self, inputs, mask=None):
        return None  # M has no padding

    def compute_output_shape(self, inputs_shape):
        return (inputs_shape[0], self.num_heads, inputs_shape[-1])
