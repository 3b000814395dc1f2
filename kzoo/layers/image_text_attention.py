"""Image-text attention: the picture attends to the text."""

import keras
from keras import ops

from kzoo.layers.dense import Dense
from kzoo.layers.dropout import Dropout
from kzoo.layers.layer import Layer
from kzoo.layers.multi_head_attention import masked_softmax


@keras.saving.register_keras_serializable("kzoo")
class ImageTextAttention(Layer):
    """Multi-head attention with the image as the query and the text as key and value.

        softmax(Q_img K_textᵀ / sqrt(d)) V_text    in each of H heads, concatenated and projected   (Eq. 3)

    The widths of image and text may differ: the image's query map has its own kernel `(D_img, H·d)`. The
    text's key and value maps share a kernel `(D, 2·H·d)`.

    Args:
        num_heads: int. H.
        key_dim: int. d, the width of a head.
        dropout: float. Rate on the attention weights. Defaults to `0`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        text: `(B, S, D)`. The tokens.
        image: `(B, R, D_img)`, features of R regions of a picture, or `(B, D_img)`, features of the whole
            picture, which counts as one region.
        text_mask: bool `(B, S)`. `True` at tokens, `False` at padding. All tokens by default. Rows without
            tokens get uniform weights.
        return_attention_scores: bool. Defaults to `False`.
        training: bool. Whether dropout is on.

    Returns:
        `(B, R, D)`; then `(B, H, R, S)` weights if requested.

    Raises:
        ValueError: an image whose rank is neither 2 nor 3.

    Example:

    >>> tokens, picture = keras.random.normal((2, 10, 64)), keras.random.normal((2, 4096))
    >>> ImageTextAttention(num_heads=4, key_dim=16)(tokens, picture).shape
    (2, 1, 64)

    Reference:
        Ma et al. 2020, "Fusion of Image-text attention for Transformer-based Multimodal Machine Translation".
        https://doi.org/10.1109/IALP48816.2019.9037732
    """

    def __init__(self, num_heads: int, key_dim: int, dropout: float = 0.0, **kwargs):
        super().__init__(**kwargs)
        self.num_heads = num_heads
        self.key_dim = key_dim
        self.dropout = dropout
        self._dropout = Dropout(dropout, dtype=self.dtype_policy, name="dropout")

    def build(self, text_shape, image_shape):
        if len(image_shape) not in (2, 3):
            raise ValueError(
                "an image must have the shape (B, R, D_img), or (B, D_img) without regions, not "
                f"{tuple(image_shape)}"
            )
        inner, dtype = self.num_heads * self.key_dim, self.dtype_policy
        self.query_dense = Dense(inner, dtype=dtype, name="query")
        self.query_dense.build(image_shape)
        self.key_value_dense = Dense(2 * inner, dtype=dtype, name="key_value")
        self.key_value_dense.build(text_shape)
        self.output_dense = Dense(text_shape[-1], dtype=dtype, name="output")
        self.output_dense.build((text_shape[0], 1, inner))

    def call(
        self,
        text,
        image,
        text_mask=None,
        return_attention_scores: bool = False,
        training: bool | None = None,
    ):
        if len(image.shape) == 2:
            image = image[:, None, :]
        q = self._split_heads(self.query_dense(image)) * self.key_dim**-0.5  # (B, R, H, d)
        keys, values = (self._split_heads(x) for x in ops.split(self.key_value_dense(text), 2, axis=-1))

        scores = ops.einsum("brhd,bshd->bhrs", q, keys)
        mask = None if text_mask is None else text_mask[:, None, None, :]  # (B, 1, 1, S)
        weights = masked_softmax(scores, mask)  # (B, H, R, S)
        mixed = ops.einsum("bhrs,bshd->brhd", self._dropout(weights, training=training), values)
        output = self.output_dense(ops.reshape(mixed, (*ops.shape(mixed)[:2], -1)))
        return (output, weights) if return_attention_scores else output

    def _split_heads(self, x):
        return ops.reshape(x, (*ops.shape(x)[:2], self.num_heads, self.key_dim))

    def compute_mask(self, inputs, mask=None):
        return None  # regions have no padding

    def compute_output_shape(self, text_shape, image_shape):
        return (text_shape[0], 1 if len(image_shape) == 2 else image_shape[1], text_shape[-1])
