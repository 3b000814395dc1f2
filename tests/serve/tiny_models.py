"""Small untrained translators for the page's tests: each is built, and each of its shapes traced, once."""

import functools
import io

import keras
import numpy as np
from named_languages import make, sentence_piece_model
from PIL import Image

from kzoo.models import AttentionBridgeBackbone, MultilingualTranslator
from kzoo.presets import image_text_tiny, pope_tiny
from kzoo.text import CharacterTokenizer

TEXT = "mandogs."
CHARACTERS = CharacterTokenizer(list("adegmnost."))
BEAM = 3
# The shortest padded length is the only one.
SIZES = {"num_layers": 2, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}


@functools.cache
def pope():
    keras.utils.set_random_seed(1)
    translator = pope_tiny(CHARACTERS, **SIZES)
    translator.source_language, translator.target_language = "en", "de"
    return translator


@functools.cache
def bridge():
    keras.utils.set_random_seed(1)
    sizes = {"embedding_dim": 16, "width": 16, "num_decoder_layers": 1, "num_heads": 3, "hidden_dim": 16}
    backbone = AttentionBridgeBackbone([14] * 3, encoder="cnn", max_length=16, **sizes)
    return MultilingualTranslator(backbone, dict.fromkeys(("en", "de", "fr"), CHARACTERS))


@functools.cache
def pictures():
    keras.utils.set_random_seed(1)
    return image_text_tiny(CHARACTERS, image_shape=(32, 48, 3), **{**SIZES, "num_layers": 1})


@functools.cache
def small100():
    return make("small", sentence_piece_model())


def picture_file() -> bytes:
    """Return a PNG file for `pictures`."""
    file = io.BytesIO()
    colours = np.random.default_rng(1).integers(0, 255, (32, 48, 3)).astype("uint8")
    Image.fromarray(colours).save(file, "PNG")
    return file.getvalue()
