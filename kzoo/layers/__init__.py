"""The zoo's layers, one per file; none depends on a model, a tokenizer or a data set.

The letters of every docstring and shape comment: `B` batch, `S` source length, `T` target length, `L` any
length, `D` model width, `H` heads, `d` width of a head, `V` vocabulary, `K` beam, `N` entries of a cache,
`R` image regions, `k` bridge heads, `F` features.

All modules are imported together, so that Keras knows every class that a saved model may name.
"""

from kzoo.errors import nearest
from kzoo.layers.attention_bridge import AttentionBridge
from kzoo.layers.by_language import ByLanguage
from kzoo.layers.convolutional_encoder import ConvolutionalEncoder
from kzoo.layers.dropout import Dropout
from kzoo.layers.glyph_char_encoder import GlyphCharEncoder
from kzoo.layers.glyph_embedding import GlyphEmbedding
from kzoo.layers.image_text_attention import ImageTextAttention
from kzoo.layers.linear_chain_crf import LinearChainCRF
from kzoo.layers.multi_head_attention import MultiHeadAttention
from kzoo.layers.output_bias import OutputBias
from kzoo.layers.per_head_pope import PerHeadPoPE
from kzoo.layers.picture_encoder import PictureEncoder
from kzoo.layers.pope_embedding import PoPEEmbedding
from kzoo.layers.recurrent_decoder import RecurrentDecoder
from kzoo.layers.recurrent_encoder import RecurrentEncoder
from kzoo.layers.relative_position_bias import RelativePositionBias
from kzoo.layers.rope_embedding import RoPEEmbedding
from kzoo.layers.transformer_decoder_layer import TransformerDecoderLayer
from kzoo.layers.transformer_encoder import TransformerEncoder
from kzoo.layers.transformer_encoder_layer import TransformerEncoderLayer

__all__ = [
    "AttentionBridge",
    "ByLanguage",
    "ConvolutionalEncoder",
    "Dropout",
    "GlyphCharEncoder",
    "GlyphEmbedding",
    "ImageTextAttention",
    "LinearChainCRF",
    "MultiHeadAttention",
    "OutputBias",
    "PerHeadPoPE",
    "PictureEncoder",
    "PoPEEmbedding",
    "RecurrentDecoder",
    "RecurrentEncoder",
    "RelativePositionBias",
    "RoPEEmbedding",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def __getattr__(name: str):
    raise AttributeError(f"{__name__} has no {name!r}; {nearest(name, __all__)}")
