"""The character-to-subword models of the glyph paper: with vectors from bitmaps, and from a lookup table."""

import keras
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.models import Adam, LabelSmoothedCrossEntropy, RecurrentBackbone, Translator
from kzoo.models.backbones import check_names, vocabulary_size_of
from kzoo.text import CharacterTokenizer, SubwordTokenizer, render_glyphs

Vocab = Tokenizer | None  # as builders take tokenizers

# Broscheit et al. 2018, Table 3.
BASE = {
    "embedding_dim": 512,
    "bidirectional": (512,),
    "unidirectional": (1024,),
    "decoder_units": (512, 1024),
    "dropout": 0.2,
}
# For two cores.
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
    """Characters encoded from their glyphs (Broscheit et al. 2018, Tables 1 to 3).

    Args:
        source_tokenizer: `CharacterTokenizer`.
        target_tokenizer: `SubwordTokenizer`.
        architecture: of the encoder, as `kzoo.layers.GlyphCharEncoder` names them.
        **overrides: arguments of `RecurrentBackbone`, and those of `recurrent`.
    """
    return recurrent(source_tokenizer, target_tokenizer, **{**BASE, **_glyph(architecture, overrides)})


def glyph_zh_en_tiny(
    source_tokenizer: Vocab = None,
    target_tokenizer: Vocab = None,
    architecture: str = "cnn_fc_relu",
    **overrides,
) -> Translator:
    """Characters encoded from their glyphs, at a size that two cores can train."""
    return recurrent(source_tokenizer, target_tokenizer, **{**TINY, **_glyph(architecture, overrides)})


def lookup_zh_en(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """The paper's baseline EMB: a learned vector for each character."""
    return recurrent(source_tokenizer, target_tokenizer, **{**BASE, **overrides})


def lookup_zh_en_tiny(
    source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides
) -> Translator:
    """A learned vector for each character, at a size that two cores can train."""
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
        source_tokenizer: `CharacterTokenizer`; its characters' glyphs are drawn here.
        target_tokenizer: `SubwordTokenizer`; by default the source's, if that is one.
        source_vocabulary_size: int. Used if there is no tokenizer.
        target_vocabulary_size: int. Used if there is no tokenizer.
        font: as `kzoo.text.render_glyphs` takes it.
        **settings: arguments of `RecurrentBackbone`.

    Raises:
        UserError: a setting that it does not have.
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
    compile_translator(translator)
    return translator


def draw_glyphs(backbone: keras.Model, tokenizer: Tokenizer | None, font: str | None = None):
    """Give a backbone that reads glyphs the glyphs of its characters; leave any other backbone unchanged.

    Args:
        backbone: decided by its `source_embedding`.
        tokenizer: `CharacterTokenizer`, or `None`.
        font: as `kzoo.text.render_glyphs` takes it.

    Raises:
        UserError: a tokenizer of another kind.
    """
    if tokenizer is not None and hasattr(backbone.source_embedding, "glyphs"):
        if not isinstance(tokenizer, CharacterTokenizer):
            raise UserError(
                f"glyphs need characters, but the source's tokenizer is a {type(tokenizer).__name__}: "
                'use CharacterTokenizer, in a recipe source_characters = "common"'
            )
        backbone.source_embedding.glyphs.assign(render_glyphs(tokenizer.get_vocabulary(), font=font))


def compile_translator(translator: keras.Model):
    """Compile with Adam at 1e-3, the rate of the paper's first four epochs, and PyTorch's ε.

    A recipe with `halve_after = 4` halves the rate for each later epoch.
    """
    translator.compile(
        optimizer=Adam(1e-3, epsilon=1e-8, global_clipnorm=5.0),
        loss=LabelSmoothedCrossEntropy(0.0),
    )
