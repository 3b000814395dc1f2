"""The zoo's layers, one per file; none depends on a model, a tokenizer or a data set.

The letters of every docstring and shape comment: `B` batch, `S` source length, `T` target length, `L` any
length, `D` model width, `H` heads, `d` width of a head, `V` vocabulary, `K` beam, `N` entries of a cache,
`R` image regions, `k` bridge heads, `F` features.
"""

import lazy_loader

from kzoo.errors import with_nearest

__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "attention_bridge": ["AttentionBridge"],
        "by_language": ["ByLanguage"],
        "convolutional_encoder": ["ConvolutionalEncoder"],
        "dropout": ["Dropout"],
        "glyph_char_encoder": ["GlyphCharEncoder"],
        "glyph_embedding": ["GlyphEmbedding"],
        "image_text_attention": ["ImageTextAttention"],
        "linear_chain_crf": ["LinearChainCRF"],
        "multi_head_attention": ["MultiHeadAttention"],
        "picture_encoder": ["PictureEncoder"],
        "pope_embedding": ["PoPEEmbedding"],
        "recurrent_decoder": ["RecurrentDecoder"],
        "recurrent_encoder": ["RecurrentEncoder"],
        "rope_embedding": ["RoPEEmbedding"],
        "transformer_decoder_layer": ["TransformerDecoderLayer"],
        "transformer_encoder": ["TransformerEncoder"],
        "transformer_encoder_layer": ["TransformerEncoderLayer"],
    },
)
__getattr__ = with_nearest(__name__, __getattr__, __all__)
