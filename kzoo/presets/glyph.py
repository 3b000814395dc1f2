"""The glyph paper's models from characters to subwords, with a glyph encoder or a lookup table."""

import keras
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.models import RecurrentBackbone, Translator
from kzoo.models.backbones import check_names, vocabulary_size_of
from kzoo.text import CharacterTokenizer, SubwordTokenizer, render_glyphs

Vocab = Tokenizer | None  # a builder's tokenizer argument

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


def recurrent(
    source_tokenizer: Vocab = None,
    target_tokenizer: Vocab = None,
    source_vocabulary_size: int = 8457,
    target_vocabulary_size: int = 32413,
    font: str | None = None,
    **settings,
) -> Translator:
    """Build a recurrent translator and compile it with the paper's recipe.

    Args:
        source_tokenizer: `CharacterTokenizer`. The builder draws its characters' glyphs.
        target_tokenizer: `SubwordTokenizer`; defaults to the source's, if that is a `SubwordTokenizer`.
        source_vocabulary_size: int. Used without a `source_tokenizer`.
        target_vocabulary_size: int. Used without a `target_tokenizer`.
        font: font file; see `kzoo.text.render_glyphs`.
        **settings: arguments of `RecurrentBackbone`.

    Raises:
        UserError: an unknown setting.
    """
    check_names(settings, recurrent, RecurrentBackbone)
    if target_tokenizer is None and isinstance(source_tokenizer, SubwordTokenizer):
        target_tokenizer = source_tokenizer  # one vocabulary for both sides
    backbone = RecurrentBackbone(
        vocabulary_size_of(source_tokenizer, source_vocabulary_size),
        vocabulary_size_of(target_tokenizer, target_vocabulary_size),
        **settings,
    )
    draw_glyphs(backbone, source_tokenizer, font)
    translator = Translator(backbone, source_tokenizer, target_tokenizer)
    translator.compile(**translator.backbone.compile_arguments())
    return translator


def draw_glyphs(backbone: keras.Model, tokenizer: Tokenizer | None, font: str | None = None):
    """Draw the glyphs of a backbone's characters, if its `source_embedding` reads glyphs.

    Raises:
        UserError: a tokenizer that is not a `CharacterTokenizer`.
    """
    if tokenizer is not None and hasattr(backbone.source_embedding, "glyphs"):
        if not isinstance(tokenizer, CharacterTokenizer):
            raise UserError(
                f"glyphs need a CharacterTokenizer, but the source's is a {type(tokenizer).__name__}; "
                'in a recipe, set source_characters = "common"'
            )
        backbone.source_embedding.glyphs.assign(render_glyphs(tokenizer.get_vocabulary(), font=font))
