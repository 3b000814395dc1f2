"""The translator: a backbone with its tokenizers and its compiled beam searches."""

import functools
import inspect
import os
from collections.abc import Callable
from typing import Self

import keras
import numpy as np
from keras import ops
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding import SearchSettings
from kzoo.decoding.batched_search import BatchedSearch, call_lock, padded
from kzoo.decoding.search_settings import padded_length
from kzoo.decoding.text_reader import Rows
from kzoo.decoding.text_translator import TextTranslator
from kzoo.errors import UserError
from kzoo.export_formats import export
from kzoo.hub.preset import Preset
from kzoo.images import image_rows
from kzoo.layers import GlyphEmbedding
from kzoo.models.backbones import BackboneMethod, freeze, frozen_layers, uses_xla
from kzoo.models.fitting import FitsTexts
from kzoo.models.losses import WholeBatchLoss, token_weights
from kzoo.models.optimizers import WarnsOfSparseGradients
from kzoo.models.preset_files import read_preset, write_preset
from kzoo.text.glyphs import DrawnRows, UnseenGlyphs
from kzoo.text.hypotheses import Hypothesis, as_hypotheses
from kzoo.text.languages import Direction
from kzoo.text.vocabulary import END, START

Image = np.ndarray | str | os.PathLike  # features, pixels, or a picture's file


@keras.saving.register_keras_serializable("kzoo")
class Translator(TextTranslator, FitsTexts, WholeBatchLoss, WarnsOfSparseGradients, keras.Model):
    """A translation model with its tokenizers, from texts to texts: `fit`, `evaluate` and `translate`.

    `fit` and `evaluate` take texts and their translations, a `tf.data.Dataset` of such pairs, or token ids in
    `kzoo.data.Batches`.

    `get_config` and `keras.models.clone_model` leave vocabularies and glyphs out. Saved files and presets
    include them.

    Args:
        backbone: a functional model from `{"source": (B, S), "target": (B, T)}` to logits `(B, T, V)`, with a
            `max_length`, that implements the decoding contract of `kzoo.decoding`, such as
            `TransformerBackbone`.
        source_tokenizer: `SubwordTokenizer` of the source language.
        target_tokenizer: of the target language; the source's by default.
        source_language: code of the source language, such as `"en"`.
        target_language: code of the target language.
        extractor: fields of the `kzoo.data.Extractor` that computed the picture features. Files with features
            of another extractor are refused; `None` accepts any.
        search: default search settings. You can replace them at any time.
        **kwargs: other arguments of `keras.Model`.

    Call arguments:
        inputs: the backbone's inputs.

    Returns:
        Logits `(B, T, V)`.

    Example:

    >>> translator = kzoo.presets.load("pope_small_multi30k_en_de")
    >>> translator.translate(["A dog runs."])
    ['Ein Hund rennt.']
    """

    engine = "keras"
    runs_on_keras = True

    def __init__(
        self,
        backbone: keras.Model,
        source_tokenizer: Tokenizer | None = None,
        target_tokenizer: Tokenizer | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
        extractor: dict | None = None,
        search: SearchSettings | None = None,
        **kwargs,
    ):
        super().__init__(**{"dtype": backbone.dtype_policy, **kwargs})  # the policy decides on loss scaling
        self.backbone = backbone
        self.source_tokenizer = source_tokenizer
        self.target_tokenizer = target_tokenizer or source_tokenizer
        self.source_language = source_language
        self.target_language = target_language
        self.extractor = extractor
        self.search = search or SearchSettings()
        self._compiled_with = None
        self._drop_stale_functions()
        self.built = True  # like the backbone

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of a sentence's image; `None` if the model reads text only."""
        shape = self.backbone.get_config().get("image_shape")
        return None if shape is None else tuple(shape)

    @property
    def max_length(self) -> int:
        """The most tokens that the model reads or writes, with the end symbol."""
        return self.backbone.max_length

    def n_best_of_rows(
        self,
        rows: Rows,
        n: int,
        search: SearchSettings,
        direction: Direction,
        progress: Callable[[int], None] | None = None,
        threads: int = 2,
    ) -> list[list[Hypothesis]]:
        tokens, images, prefixes = rows
        languages = self._language_inputs(*direction, len(tokens))
        others = languages | ({} if images is None else {"image": images})
        self._drop_stale_functions()
        self.bake()
        # Sentences with characters to draw are searched apart, because the search is compiled anew for them.
        apart = [number for number, row in enumerate(tokens) if self._beyond(row)]
        settings, usual = (search, threads, progress), list(tokens)
        for number in apart:
            usual[number] = []
        found = self._searches.search(usual, others, *settings, prefixes)
        if apart:
            drawn = DrawnRows([tokens[number] for number in apart], self.unseen_glyphs())
            inputs = {name: values[apart] for name, values in others.items()} | {"drawn": drawn}
            own_prefixes = [prefixes[number] for number in apart] if prefixes else None
            results = self._searches.search(drawn.tokens, inputs, *settings, own_prefixes)
            for number, result in zip(apart, results, strict=True):
                found[number] = result
        return as_hypotheses(found, n, self.tokenizers_of(*direction)[1])

    def attention(
        self,
        text: str,
        translation: str | None = None,
        image: Image | None = None,
        source_language: str | None = None,
        target_language: str | None = None,
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return the attention of a translation's tokens to the tokens of its sentence.

        The translation is tokenized again, so its subwords may differ from those that the search generated.

        Args:
            text: the sentence.
            translation: its translation; by default the model's.
            image: one image, as in `translate`'s `images`.
            source_language, target_language: as in `translate`.

        Returns:
            The sentence's S subwords and the translation's T subwords, both with the end symbol, and the
            weights `(layers, H, T, S)`, row t for predicting subword t; `(1, 1, T, S)` for a recurrent model.
            With an attention bridge, the names of M's rows, `"1"` to `"k"`, replace the S subwords.

        Raises:
            UserError: an empty sentence, a sentence or translation longer than the model's maximum, or an
                image that does not fit.
        """
        direction = self.direction(source_language, target_language)
        reading = self._read(text, direction)
        images = image_rows(None if image is None else [image], 1, self.image_shape)
        if translation is None:
            ((best,),) = self.n_best_of_readings([reading], 1, self.search, direction, images=images)
            translation = best.text
        target = self.translation_tokens(translation, direction)
        return self.attention_of_tokens(reading.tokens, target, direction, images)

    def attention_of_tokens(
        self, source: list[int], target: list[int], direction: Direction, images: np.ndarray | None = None
    ) -> tuple[list[str], list[str], np.ndarray]:
        """Return what `attention` does, for token ids without end symbols.

        Args:
            source, target: a sentence that is not empty, and its translation.
            direction: what `direction` returns.
            images: `(1, *image_shape)`, for a model that reads images.
        """
        source_tokenizer, target_tokenizer = self.tokenizers_of(*direction)
        layers = self._source_attention(source, target, direction, images)
        if self.embeds:  # then it attends to the rows of M
            attended = [str(row + 1) for row in range(self.backbone.matrix_shape[0])]
        else:
            attended = pieces(source_tokenizer, source)
        subwords = pieces(target_tokenizer, target)
        return attended, subwords, layers[:, :, : len(subwords), : len(attended)]

    def _attended(self, pairs, direction):
        source_tokenizer, target_tokenizer = self.tokenizers_of(*direction)
        for source, target in pairs:
            layers = self._source_attention(source, target, direction)
            weights = layers[max(len(layers) - 2, 0)].mean(axis=0)
            if self.embeds:  # it attends to the rows of M, and these to the sentence
                weights = weights @ self.bridge_attention_of_tokens(source, direction)[1]
            subwords = pieces(source_tokenizer, source), pieces(target_tokenizer, target)
            yield *(some[:-1] for some in subwords), weights[: len(target), : len(source)]

    def _source_attention(
        self, source: list[int], target: list[int], direction: Direction, images: np.ndarray | None = None
    ) -> np.ndarray:
        """Return the attention of a translation's tokens to the tokens of its sentence, with padding."""
        drawn = DrawnRows([source], self.unseen_glyphs()) if self._beyond(source) else None
        length = padded_length(max(len(source), len(target)), self.max_length)
        inputs = {
            "source": padded([[*(drawn.tokens[0] if drawn else source), END]], length),
            "target": padded([[START, *target]], length),
            **self._language_inputs(*direction, 1),
            **({} if images is None else {"image": images}),
            **({"drawn": drawn[[0]]} if drawn else {}),
        }
        layers = self._compiled(self.backbone.source_attention, few_calls=True)(inputs)
        return np.stack([layer[0] for layer in layers]).astype("float32")

    def image_attention(self, text: str, image: Image) -> tuple[list[str], np.ndarray]:
        """Return a sentence's subwords with the end symbol, and the picture's attention to them.

        Args:
            text: the sentence.
            image: one image, as in `translate`'s `images`.

        Returns:
            The S subwords, and the weights `(layers, H, R, S)`.

        Raises:
            UserError: a model that reads text only, an empty sentence, or an image that does not fit.
        """
        images = image_rows([image], 1, self.image_shape)
        return self.image_attention_of_tokens(self._read(text, self.direction()).tokens, images)

    def image_attention_of_tokens(
        self, tokens: list[int], images: np.ndarray
    ) -> tuple[list[str], np.ndarray]:
        """Return what `image_attention` does, for token ids without the end symbol.

        Args:
            tokens: a sentence that is not empty.
            images: `(1, *image_shape)`.
        """
        inputs = {"source": np.array([[*tokens, END]], "int32"), "image": images}
        scores = self.backbone.image_attention(inputs)
        weights = np.stack([ops.convert_to_numpy(layer[0]) for layer in scores])
        return pieces(self.source_tokenizer, tokens), weights.astype("float32")

    # Overridden by `MultilingualTranslator`.

    def _language_inputs(self, source: str | None, target: str | None, rows: int) -> dict[str, np.ndarray]:
        """Return the search's inputs that name the languages, one row per sentence."""
        tokens = self.language_tokens(target)
        return {"language_token": np.repeat(np.array(tokens, "int32"), rows)} if tokens else {}

    def _arguments(self) -> dict:
        """Return the constructor's arguments, except the backbone and the search."""
        source, target = self.source_tokenizer, self.target_tokenizer
        return {
            "source_tokenizer": source,
            "target_tokenizer": None if target is source else target,
            "source_language": self.source_language,
            "target_language": self.target_language,
            **({} if self.extractor is None else {"extractor": dict(self.extractor)}),
        }

    def _tokenizers_and_settings(self) -> tuple[list, dict]:
        """Return the tokenizers that a preset includes, and its other settings as JSON."""
        settings = self._arguments()
        source = settings.pop("source_tokenizer")
        return [source, settings.pop("target_tokenizer") or source], settings

    # As a Keras model.

    def call(self, inputs, training=None):
        # If the names differ, Keras would match the inputs by their order.
        if isinstance(inputs, dict) and (others := inputs.keys() - self.backbone.input.keys()):
            raise ValueError(
                f"the model reads {', '.join(sorted(self.backbone.input))}, not {', '.join(sorted(others))}"
            )
        return self.backbone(inputs, training=training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        # Keras uses the weights for `weighted_metrics`.
        return super().compute_metrics(x, y, y_pred, token_weights(y, sample_weight))

    @functools.wraps(keras.Model.compile)
    def compile(self, *args, **kwargs):
        given = inspect.signature(super().compile).bind(*args, **kwargs).arguments
        # Keras would not choose XLA on a CPU, where it is faster, but would on a GPU for recurrent models,
        # whose shapes it compiles slowly.
        if given.get("jit_compile", "auto") == "auto":
            given["jit_compile"] = uses_xla(self.backbone) and not given.get("run_eagerly")
        super().compile(**given)

    def get_config(self):
        return {
            **super().get_config(),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "search": self.search.entries(),
            "frozen_layers": frozen_layers(self.backbone),
            **keras.saving.serialize_keras_object(self._arguments()),
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("frozen_layers")
        search = SearchSettings.from_entries(config.pop("search"), "the configuration")
        parts = {name: keras.saving.deserialize_keras_object(value) for name, value in config.items()}
        model = cls(**parts, search=search)
        freeze(model.backbone, frozen)
        return model

    def save_to_preset(self, folder: str | os.PathLike, dtype: str = "float16"):
        """Write the translator as a keras-hub preset: configuration, weights, tokenizers, search.

        Args:
            folder: the preset's folder. It is written completely or not at all. An earlier preset there is
                replaced; other files in the folder, such as its card, are kept.
            dtype: the saved weights' dtype: `"float16"`, or `"float32"`, which is exact and twice as large.

        Raises:
            UserError: the folder holds something other than a preset, or cannot be written; a weight too
                large for float16; another dtype; settings that `from_preset` would refuse, such as a language
                "zh/TW".
        """
        with call_lock():
            write_preset(folder, self, *self._tokenizers_and_settings(), dtype)

    def save(self, *args, **kwargs):
        """Save the translator to a file as Keras does, while no other thread translates."""
        with call_lock():
            super().save(*args, **kwargs)

    def save_weights(self, *args, **kwargs):
        """Save the weights to a file as Keras does, while no other thread translates."""
        with call_lock():
            super().save_weights(*args, **kwargs)

    @classmethod
    def from_preset(cls, preset: str | os.PathLike | Preset, **overrides) -> Self:
        """Load a translator that `save_to_preset` wrote, compiled as in its paper.

        Args:
            preset: a folder, a name on the shelf, a handle, or a located preset; see `kzoo.presets.load`.
            **overrides: arguments of the backbone that replace the saved ones, such as `dropout`.
        """
        translator = read_preset(preset, cls, **overrides)
        translator.compile(**translator.backbone.compile_arguments())
        return translator

    def export(
        self,
        filepath: str | os.PathLike,
        format: str = "saved_model",
        verbose: bool | None = None,
        input_signature=None,
        *,
        beam_size: int | None = None,
        length_penalty: float | Callable | None = None,
        precision: str = "float32",
    ):
        """Write the translator for other programs, with search and tokenizers inside.

        Args:
            filepath: the folder to write; for `"argos"`, a file `NAME.argosmodel`.
            format: `"saved_model"`, which Keras calls `"tf_saved_model"`; `"ctranslate2"`; or `"argos"`.
            verbose: bool. Whether to print what was written. A SavedModel takes a minute or two.
            input_signature: must be `None`: an export takes texts.
            beam_size, length_penalty: as in `translate`; the other search settings are those of `search`.
                Argos Translate has its own.
            precision: the weights' precision: `"float32"`, `"float16"` or `"int8"`.

        Raises:
            UserError: another format; an input signature; or as for `kzoo.export.export_saved_model`,
                `export_ctranslate2` or `export_argos`.
        """
        if input_signature is not None:
            raise UserError("an export of a translator takes text: leave input_signature out")
        format = "saved_model" if format == "tf_saved_model" else format
        export(self, filepath, format, precision, beam_size=beam_size, length_penalty=length_penalty)
        if verbose:
            print(f"{filepath}: written, {format}, {precision}")

    def _drop_stale_functions(self):
        """Drop compiled functions if the weights were replaced, as by `quantize` and `enable_lora`."""
        weights = tuple(map(id, self.backbone.weights))
        if weights != self._compiled_with:
            self._searches = BatchedSearch(self.backbone, self.backbone.max_length, uses_xla(self.backbone))
            self._methods, self._drawer = {}, None
            self._compiled_with = weights

    def _compiled(self, method: Callable, few_calls: bool = False) -> Callable:
        """Return a function of the backbone's inputs, compiled once for each of their shapes."""
        self._drop_stale_functions()
        name = method.__name__
        if name not in self._methods:
            model = BackboneMethod(self.backbone, method, few_calls)

            def call(inputs):
                with call_lock():
                    return model.predict_on_batch(inputs)

            # Keep only the function: Keras would track the model itself as a layer of this one.
            self._methods[name] = call
        return self._methods[name]

    def bake(self):
        """Encode the glyphs of all source characters once, if the model reads glyphs."""
        with call_lock():
            for layer in self._glyph_embeddings():
                layer.bake()

    @property
    def glyphs(self) -> np.ndarray | None:
        with call_lock():
            drawn = [ops.convert_to_numpy(layer.glyphs) for layer in self._glyph_embeddings()]
        return drawn[0] if drawn else None

    def drawable(self, characters: str) -> str:
        if not (characters and self._glyph_embeddings()):
            return ""
        return "".join(character for character in characters if self.unseen_glyphs()(character) is not None)

    def unseen_glyphs(self) -> UnseenGlyphs:
        """Return what draws the characters that the source vocabulary lacks."""
        if self._drawer is None:
            self._drawer = UnseenGlyphs(self.source_tokenizer.get_vocabulary(), self.glyphs)
        return self._drawer

    def _beyond(self, tokens: list[int]) -> bool:
        """Return whether a sentence has characters that are read from pixels: their ids are from V on."""
        return any(max(tokens, default=0) >= layer.vocabulary_size for layer in self._glyph_embeddings())

    def _glyph_embeddings(self) -> list[GlyphEmbedding]:
        return [layer for layer in self.backbone.layers if isinstance(layer, GlyphEmbedding)]


def pieces(tokenizer: Tokenizer, tokens: list[int]) -> list[str]:
    """Return the pieces of token ids, then the end symbol."""
    return [*map(tokenizer.id_to_token, tokens), tokenizer.id_to_token(END)]
