"""The zoo's layers, one per file. They do not depend on models, tokenizers or data sets.

Letters in docstrings and shape comments: `B` batch, `S` source length, `T` target length, `L` any
length, `N` entries that are attended to (of a memory or a cache), `D` model width, `E` width of a layer's
inputs if it differs, `H` heads, `d` width of a head, `V` vocabulary, `K` beam, `k` bridge heads, `C` tags,
`F` features, `R` regions of an image, `D_img` width of an image's features, `h` and `w` a picture's height
and width.

Importing the package imports all modules, so Keras knows every class that a saved model may name.
"""

from kzoo.errors import nearest
from kzoo.layers.attention_bridge import AttentionBridge as AttentionBridge
from kzoo.layers.by_language import ByLanguage as ByLanguage
from kzoo.layers.convolutional_encoder import ConvolutionalEncoder as ConvolutionalEncoder
from kzoo.layers.dropout import Dropout as Dropout
from kzoo.layers.glyph_char_encoder import GlyphCharEncoder as GlyphCharEncoder
from kzoo.layers.glyph_embedding import GlyphEmbedding as GlyphEmbedding
from kzoo.layers.image_text_attention import ImageTextAttention as ImageTextAttention
from kzoo.layers.linear_chain_crf import LinearChainCRF as LinearChainCRF
from kzoo.layers.multi_head_attention import MultiHeadAttention as MultiHeadAttention
from kzoo.layers.output_bias import OutputBias as OutputBias
from kzoo.layers.per_head_pope import PerHeadPoPE as PerHeadPoPE
from kzoo.layers.picture_encoder import PictureEncoder as PictureEncoder
from kzoo.layers.pope_embedding import PoPEEmbedding as PoPEEmbedding
from kzoo.layers.recurrent_decoder import RecurrentDecoder as RecurrentDecoder
from kzoo.layers.recurrent_encoder import RecurrentEncoder as RecurrentEncoder
from kzoo.layers.relative_position_bias import RelativePositionBias as RelativePositionBias
from kzoo.layers.rope_embedding import RoPEEmbedding as RoPEEmbedding
from kzoo.layers.sine_positions import SinePositions as SinePositions
from kzoo.layers.transformer_decoder_layer import TransformerDecoderLayer as TransformerDecoderLayer
from kzoo.layers.transformer_encoder import TransformerEncoder as TransformerEncoder
from kzoo.layers.transformer_encoder_layer import TransformerEncoderLayer as TransformerEncoderLayer

__all__ = sorted(name for name, value in globals().items() if isinstance(value, type))


def __getattr__(name: str):
    raise AttributeError(f"{__name__} has no {name!r}; {nearest(name, __all__)}")
