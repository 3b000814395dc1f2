"""Assembles translators of one direction: a backbone with its tokenizers, compiled with a paper's recipe."""

from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError
from kzoo.models import RecurrentBackbone, TransformerBackbone, Translator
from kzoo.models.backbones import TranslationBackbone, check_names, vocabulary_size_of
from kzoo.text import CharacterTokenizer, SubwordTokenizer, render_glyphs

Vocab = Tokenizer | None  # a builder's tokenizer argument


def transformer(
    source_tokenizer: Vocab = None,
    target_tokenizer: Vocab = None,
    source_vocabulary_size: int = 8000,
    target_vocabulary_size: int | None = None,
    font: str | None = None,
    **settings,
) -> Translator:
    """Build a Transformer translator and compile it with Vaswani's recipe.

    Args:
        source_tokenizer: `SubwordTokenizer` of the source, or of both languages; `CharacterTokenizer` for
            `source_embedding="glyph"`.
        target_tokenizer: `SubwordTokenizer` of the target; `None`: one joint vocabulary.
        source_vocabulary_size: int. Used without a `source_tokenizer`.
        target_vocabulary_size: int. Used without a `target_tokenizer`; `None`: one joint vocabulary.
        font: font file for `source_embedding="glyph"`; see `kzoo.text.render_glyphs`.
        **settings: arguments of `TransformerBackbone`.

    Raises:
        UserError: an unknown setting.
    """
    check_names(settings, transformer, TransformerBackbone)
    backbone = TransformerBackbone(
        vocabulary_size_of(source_tokenizer, source_vocabulary_size),
        vocabulary_size_of(target_tokenizer, target_vocabulary_size),
        **settings,
    )
    return _compiled(backbone, source_tokenizer, target_tokenizer, font)


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
    return _compiled(backbone, source_tokenizer, target_tokenizer, font)


def _compiled(backbone: TranslationBackbone, source: Vocab, target: Vocab, font: str | None) -> Translator:
    """Return the compiled translator; the glyphs of its source characters are drawn, if it reads them.

    Raises:
        UserError: glyphs are drawn with a `source` tokenizer that is not a `CharacterTokenizer`.
    """
    if source is not None and backbone.get_config()["source_embedding"] == "glyph":
        if not isinstance(source, CharacterTokenizer):
            raise UserError(
                f"glyphs need a CharacterTokenizer, but the source's is a {type(source).__name__}; "
                'in a recipe, set source_characters = "common"'
            )
        backbone.source_embedding.glyphs.assign(render_glyphs(source.get_vocabulary(), font=font))
    translator = Translator(backbone, source, target)
    translator.compile(**backbone.compile_arguments())
    return translator
