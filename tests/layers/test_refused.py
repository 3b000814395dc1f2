"""What a layer cannot be, or be called with: each an error that names it."""

import keras
import numpy as np
import pytest

from kzoo.layers import (
    Dropout,
    GlyphCharEncoder,
    GlyphEmbedding,
    ImageTextAttention,
    LinearChainCRF,
    MultiHeadAttention,
    PictureEncoder,
    PoPEEmbedding,
    RecurrentEncoder,
    RelativePositionBias,
    RoPEEmbedding,
    TransformerDecoderLayer,
    TransformerEncoder,
    TransformerEncoderLayer,
)
from kzoo.layers.transformer_layer import Residual

X = np.ones((2, 5, 8), "float32")


@pytest.mark.parametrize(
    ("call", "kind", "name"),
    [
        (lambda: Dropout(1.0), ValueError, "rate"),
        (lambda: GlyphCharEncoder(architecture="cnn"), ValueError, "cnn_fc_relu"),
        (lambda: GlyphCharEncoder(architecture="cnn_relu", num_features=64), ValueError, "num_features"),
        (lambda: GlyphCharEncoder(8)(np.ones((3, 20, 20))), ValueError, "20, 20"),
        (lambda: GlyphEmbedding(np.zeros((4, 20, 20)), GlyphCharEncoder(6)), ValueError, "(4, 20, 20)"),
        (lambda: GlyphEmbedding(np.zeros((22, 22)), GlyphCharEncoder(6)), ValueError, "(22, 22)"),
        (lambda: GlyphEmbedding(np.zeros((4, 22, 22, 1)), GlyphCharEncoder(6)), ValueError, "(4, 22, 22, 1)"),
        (lambda: ImageTextAttention(2, 4)(X, np.zeros((2, 7, 7, 12))), ValueError, "(2, 7, 7, 12)"),
        (lambda: LinearChainCRF(0), ValueError, "num_tags"),
        (lambda: LinearChainCRF(3)(keras.KerasTensor((None, 4, 2))), ValueError, "num_tags"),
        (
            lambda: LinearChainCRF(3).negative_log_likelihood(X[..., :2], np.zeros((2, 5), "int32")),
            ValueError,
            "num_tags",
        ),
        (lambda: MultiHeadAttention(0, 4), ValueError, "num_heads"),
        (lambda: MultiHeadAttention(-1, 4), ValueError, "num_heads"),
        (lambda: MultiHeadAttention(2, 0), ValueError, "key_dim"),
        *(
            (lambda rotary=rotary: MultiHeadAttention(2, 4, rotary=rotary), ValueError, "rotary")
            for rotary in (RoPEEmbedding, "rope", True)
        ),
        (lambda: MultiHeadAttention(2, 4)(X, X[..., :6]), ValueError, "width 8"),
        # Keras has the key there; it must not be taken for a mask.
        (lambda: MultiHeadAttention(2, 4)(X, X, X, X), TypeError, "positional"),
        (lambda: MultiHeadAttention(2, 4)(X, X, use_causal_mask=True), ValueError, "causal"),
        (lambda: MultiHeadAttention(2, 4)(X, attention_mask=X, use_causal_mask=True), ValueError, "causal"),
        (lambda: PictureEncoder(channels=(4, 8))(np.zeros((1, 12, 10, 3), "uint8")), ValueError, "12×10"),
        (lambda: PictureEncoder()(np.zeros((64, 64, 3), "uint8")), ValueError, "(B, h, w, 3)"),
        (lambda: PictureEncoder()(np.zeros((1, 64, 64, 1), "uint8")), ValueError, "(B, h, w, 3)"),
        (lambda: PoPEEmbedding(max_length=0), ValueError, "max_length"),
        (lambda: PoPEEmbedding(first_order=-1), ValueError, "first_order"),
        (lambda: PoPEEmbedding(8)(X, start_index=-2), ValueError, "start_index"),
        (lambda: RecurrentEncoder(cell="rnn"), ValueError, "lstm, gru"),
        (lambda: RelativePositionBias(num_heads=0), ValueError, "num_heads"),
        (lambda: RelativePositionBias(2, num_buckets=7), ValueError, "num_buckets"),
        (lambda: RelativePositionBias(2, max_distance=8), ValueError, "max_distance"),
        (lambda: Residual("middle"), ValueError, "norm"),
        (lambda: RoPEEmbedding()(np.zeros((2, 1, 4, 7), "float32")), ValueError, "7"),
        (lambda: TransformerDecoderLayer(3, 16)(X, X), ValueError, "num_heads=3"),
        (lambda: TransformerEncoder(width=8, num_heads=3)(X[..., :4]), ValueError, "num_heads=3"),
        (lambda: TransformerEncoderLayer(0, 16), ValueError, "num_heads"),
        (lambda: TransformerEncoderLayer(3, 16)(X), ValueError, "num_heads=3"),
        (lambda: TransformerEncoderLayer(2, 16, norm="middle"), ValueError, "norm"),
    ],
)
def test_it_is_named(call, kind, name):
    with pytest.raises(kind) as refused:
        call()
    assert name in str(refused.value)
