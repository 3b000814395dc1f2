"""What the backbones share: how they are saved, source embeddings, and checks of their arguments."""

import inspect
from collections.abc import Callable, Sequence
from numbers import Integral

import keras
from keras_hub.models import Backbone
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError, nearest
from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.layers.glyph_architectures import FORMAT, read_options

SOURCE_EMBEDDINGS = ("lookup", "glyph")
# Beyond any machine and any model: building more would not end, or fill the memory.
MOST_LAYERS, LARGEST_SIZE = 1000, 10**7


class TranslationBackbone(Backbone):
    """A backbone that is saved as what it was made from, which its constructor gives to `_keep`."""

    def _keep(self, arguments: dict):
        """Keep a constructor's `locals()`, but Keras's own, as JSON has them.

        Raises:
            ValueError: an argument annotated as an int, a size, that is no whole number of at least 1 or is
                too large to be built; one annotated as ints, the sizes of a stack, with such a size or none;
                a dropout outside [0, 1).
        """
        for name, parameter in inspect.signature(arguments["__class__"].__init__).parameters.items():
            value = arguments[name]
            if parameter.annotation is int:
                check_sizes(name, value)
            elif parameter.annotation == Sequence[int]:
                check_sizes(name, list(value))
            elif name.endswith("dropout") and not 0 <= value < 1:
                raise ValueError(f"{name} is at least 0 and less than 1, not {value!r}")
        others = ("self", "__class__", "dtype", "name", "trainable")
        own = {name: value for name, value in arguments.items() if name not in others}
        self._settings = {n: list(value) if isinstance(value, tuple) else value for n, value in own.items()}

    def get_config(self):
        config = {**super().get_config(), **self._settings}
        embedding = getattr(self, "source_embedding", None)
        if isinstance(embedding, GlyphEmbedding):  # all that its encoder depends on
            names = ("architecture", "num_features")
            form = {name: getattr(embedding.encoder, name) for name in names}
            config["glyph_options"] = {**config["glyph_options"], **form, "format": FORMAT}
        return config

    @classmethod
    def from_config(cls, config):
        if config.get("source_embedding") == "glyph":  # older files say less about it
            config = {**config, "glyph_options": read_options(config.get("glyph_options") or {})}
        return super().from_config(config)


def token_inputs(*sides: str) -> dict:
    """Return a backbone's inputs of token ids `(B, L)`, by their names."""
    return {side: keras.Input((None,), dtype="int32", name=side) for side in sides}


def check_source_embedding(kind: str, glyph_options: dict | None):
    """Raise `ValueError` for an unknown kind of source embedding, or options that it does not have."""
    if kind not in SOURCE_EMBEDDINGS:
        raise ValueError(f"source_embedding is one of {', '.join(SOURCE_EMBEDDINGS)}, not {kind!r}")
    if kind != "glyph" and glyph_options:
        raise ValueError(f"source_embedding={kind!r} has no glyph_options, not {glyph_options!r}")


def glyph_embedding(
    vocabulary_size: int, width: int, glyph_options: dict | None, dtype, name: str
) -> GlyphEmbedding:
    """Return the layer that computes vectors of D = `width` numbers from `vocabulary_size` glyphs."""
    options = glyph_options or {}
    if options.get("num_features") is not None:
        check_sizes("num_features", options["num_features"])
    encoder = GlyphCharEncoder(width, **options, dtype=dtype, name="glyph_encoder")
    return GlyphEmbedding(vocabulary_size, encoder, dtype=dtype, name=name)


def unit_normal() -> keras.initializers.Initializer:
    """Return the initializer of a recurrent network's token vectors.

    Vectors of Keras's default size, ±0.05, have little effect on the network: a bridge's loss per sentence
    after 330 batches was 97 with those and 89 with these, and 89 and 81 at three times the rate.
    """
    return keras.initializers.RandomNormal(stddev=1.0)


def check_sizes(name: str, value: int | list[int]):
    """Raise `ValueError` for a size, or one of a stack's, that is no whole number from 1 to the most."""
    if value == []:
        raise ValueError(f"no {name}: give at least one")
    one = f"each of {name}" if isinstance(value, list) else name
    most = MOST_LAYERS if name.endswith("layers") else LARGEST_SIZE
    for size in value if isinstance(value, list) else [value]:
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{one} is a whole number of at least 1, not {size!r}")
        if size > most:
            raise ValueError(f"{one} is at most {most:,}, not {size:,}")


def vocabulary_size_of(tokenizer: Tokenizer | None, default: int | None) -> int | None:
    """Return the vocabulary size of a tokenizer; without one, the default.

    Raises:
        UserError: something other than a tokenizer, such as a vocabulary size.
    """
    if tokenizer is None:
        return default
    if not isinstance(tokenizer, Tokenizer):
        raise UserError(
            f"{tokenizer!r:.80} is not a tokenizer: give one of kzoo.text, such as SubwordTokenizer, or give "
            "vocabulary sizes by name, such as source_vocabulary_size=8000"
        )
    return tokenizer.vocabulary_size()


def check_names(settings: dict, *takers: Callable):
    """Raise `UserError` for a setting that is no argument with a default of any of `takers`."""
    parameters = [one for taker in takers for one in inspect.signature(taker).parameters.values()]
    known = [one.name for one in parameters if one.default is not one.empty]
    for name in settings:
        if name not in known:
            raise UserError(f"there is no argument {name!r}; {nearest(name, known)}")
