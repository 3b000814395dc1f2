"""The glyph paper's models from characters to subwords, with a glyph encoder or a lookup table."""

from kzoo.models import Translator
from kzoo.presets.assembly import Vocab, recurrent

# Broscheit et al. 2018, Table 3.
BASE = {
    "embedding_dim": 512,
    "bidirectional": (512,),
    "unidirectional": (1024,),
    "decoder_units": (512, 1024),
    "dropout": 0.2,
}
# Trains on two CPU cores.
TINY = {
    "embedding_dim": 128,
    "bidirectional": (128,),
    "unidirectional": (256,),
    "decoder_units": (256,),
    "dropout": 0.3,
}


def glyph_zh_en(
    source_tokenizer: Vocab = None,
    target_tokenizer: Vocab = None,
    architecture: str = "cnn_fc_relu",
    **overrides,
) -> Translator:
    """Recurrent model that encodes Chinese characters from glyphs (Broscheit et al. 2018, Tables 1 to 3).

    Args:
        source_tokenizer: `CharacterTokenizer`.
        target_tokenizer: `SubwordTokenizer`.
        architecture: the glyph encoder's architecture; see `kzoo.layers.GlyphCharEncoder`.
        **overrides: arguments of `RecurrentBackbone`; also `source_vocabulary_size` and
            `target_vocabulary_size`, used without tokenizers, and `font`, a font file.
    """
    return recurrent(source_tokenizer, target_tokenizer, **{**BASE, **_glyph(architecture, overrides)})


def glyph_zh_en_tiny(
    source_tokenizer: Vocab = None,
    target_tokenizer: Vocab = None,
    architecture: str = "cnn_fc_relu",
    **overrides,
) -> Translator:
    """`glyph_zh_en` at a size that two CPU cores can train."""
    return recurrent(source_tokenizer, target_tokenizer, **{**TINY, **_glyph(architecture, overrides)})


def lookup_zh_en(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """The glyph paper's baseline EMB: `glyph_zh_en` with a learned vector for each character."""
    return recurrent(source_tokenizer, target_tokenizer, **{**BASE, **overrides})


def lookup_zh_en_tiny(
    source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides
) -> Translator:
    """`lookup_zh_en` at a size that two CPU cores can train."""
    return recurrent(source_tokenizer, target_tokenizer, **{**TINY, **overrides})


def _glyph(architecture: str, overrides: dict) -> dict:
    options = {"architecture": architecture, **(overrides.get("glyph_options") or {})}
    return {"source_embedding": "glyph", **overrides, "glyph_options": options}
