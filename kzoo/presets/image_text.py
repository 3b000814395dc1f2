"""The Transformers of the image-text attention paper, with and without pictures."""

from kzoo.models import Translator
from kzoo.models.transformer import image_text_recipe
from kzoo.presets import pope
from kzoo.presets.assembly import Vocab, transformer

# Ma et al. 2020, Section III.B: Transformer base; the fully connected layer FC7 of VGG-19 has 4,096 numbers.
BASE = {**pope.BASE, "position_encoding": "sine"}
TINY = {**pope.TINY, "position_encoding": "sine"}
FC7 = (4096,)
PICTURE = (64, 64, 3)  # of the built-in Scenes


def image_text_base(
    source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides
) -> Translator:
    """Transformer base; in the encoder a picture's FC7 features attend to the tokens (Ma et al. 2020)."""
    return image_text(source_tokenizer, target_tokenizer, **{**BASE, "image_shape": FC7, **overrides})


def text_only_base(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """`image_text_base` without pictures: the paper's baseline."""
    return image_text(source_tokenizer, target_tokenizer, **{**BASE, **overrides})


def image_text_tiny(
    source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides
) -> Translator:
    """Small Transformer with pictures of 64×64 pixels, read by a convolutional network trained with it."""
    return image_text(source_tokenizer, target_tokenizer, **{**TINY, "image_shape": PICTURE, **overrides})


def text_only_tiny(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **overrides) -> Translator:
    """`image_text_tiny` without pictures."""
    return image_text(source_tokenizer, target_tokenizer, **{**TINY, **overrides})


def image_text(source_tokenizer: Vocab = None, target_tokenizer: Vocab = None, **settings) -> Translator:
    """Build a Transformer translator as `transformer` does, and compile it with the paper's recipe."""
    translator = transformer(source_tokenizer, target_tokenizer, **settings)
    translator.compile(**image_text_recipe(translator.backbone.width))  # the model without pictures, too
    return translator
