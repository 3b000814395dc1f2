"""Base class of every translator: a backbone with its compiled beam searches, saved and exported."""

import os
from collections.abc import Callable, Iterable
from typing import Self

import keras
from keras_hub.tokenizers import Tokenizer

from kzoo.decoding.batched_search import BatchedSearch
from kzoo.decoding.search_settings import SearchSettings, check_whole_numbers
from kzoo.errors import UserError
from kzoo.models.label_smoothed_cross_entropy import token_weights
from kzoo.models.preset_files import in_one_line, read_preset, write_preset
from kzoo.models.source_attention import SourceAttention
from kzoo.models.texts_and_tokens import tokenize_prefixes
from kzoo.models.whole_batch_loss import WholeBatchLoss
from kzoo.models.xla import uses_xla


class TranslationModel(WholeBatchLoss, keras.Model):
    """Base class of translators: wraps a backbone that implements the decoding contract of `kzoo.decoding`.

    Args:
        backbone: a functional model with a `max_length`, such as `TransformerBackbone`.
        search: how translations are searched for where a call does not say; it may be replaced at any time.
        **kwargs: other arguments of `keras.Model`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(B, T, V)`.
    """

    def __init__(self, backbone: keras.Model, search: SearchSettings | None = None, **kwargs):
        super().__init__(**{"dtype": backbone.dtype_policy, **kwargs})  # the policy decides on loss scaling
        self.backbone = backbone
        self.search = search or SearchSettings()
        self._compiled_with = None
        self._heed_new_weights()
        self.built = True  # like the backbone

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of the image that comes with a sentence; `None`: the model reads text only."""
        shape = self.backbone.get_config().get("image_shape")
        return None if shape is None else tuple(shape)

    def call(self, inputs, training=None):
        # Keras would take a dictionary's values in the order of their names, whatever these are.
        if isinstance(inputs, dict) and (others := inputs.keys() - self.backbone.input.keys()):
            raise ValueError(
                f"the model reads {', '.join(sorted(self.backbone.input))}, not {', '.join(sorted(others))}"
            )
        return self.backbone(inputs, training=training)

    def compute_metrics(self, x, y, y_pred, sample_weight=None):
        # Keras uses the weights for `weighted_metrics`.
        weights = token_weights(y) if sample_weight is None else sample_weight
        return super().compute_metrics(x, y, y_pred, weights)

    def _resolve_auto_jit_compile(self):
        # For `compile` without `jit_compile`. Keras itself would not use XLA on a CPU, where it is faster,
        # but would on a GPU for switches between languages, which it cannot compile.
        return uses_xla(self.backbone)

    def save_to_preset(self, folder: str | os.PathLike):
        """Write the translator as a keras-hub preset: configuration, float16 weights, tokenizers, search.

        Args:
            folder: the preset's folder. It is written completely or not at all, and replaces an earlier
                preset there; other files in the folder, such as its card, are kept.

        Raises:
            UserError: the folder holds something other than a preset, or cannot be written; a weight beyond
                float16; settings that `from_preset` would refuse, such as a language "zh/TW".
        """
        write_preset(folder, self, *self._tokenizers_and_settings())

    @classmethod
    def from_preset(cls, folder: str | os.PathLike, **overrides) -> Self:
        """Read what `save_to_preset` wrote.

        Args:
            folder: the preset: a folder, a name on the shelf, or a handle, as `kzoo.presets.load` takes it.
            **overrides: arguments of the backbone that replace the saved ones, such as `dropout`.
        """
        parts = read_preset(folder, cls, **overrides)
        with in_one_line(folder):
            return cls._from_parts(*parts)

    def _tokenizers_and_settings(self) -> tuple[list, dict]:
        """Return what a preset has beside the backbone: tokenizers, and other arguments as JSON."""
        raise NotImplementedError

    def get_config(self):
        # What the backbone was made from does not say which of its layers have been frozen since.
        layers = self.backbone._flatten_layers()
        return {
            **super().get_config(),
            "backbone": keras.saving.serialize_keras_object(self.backbone),
            "search": self.search.entries(),
            "frozen_layers": [number for number, layer in enumerate(layers) if not layer.trainable],
        }

    @classmethod
    def from_config(cls, config):
        config = dict(config)
        frozen = config.pop("frozen_layers", [])  # not in older files
        search = SearchSettings.from_entries(config.pop("search", {}), "the configuration")  # likewise
        parts = {name: keras.saving.deserialize_keras_object(value) for name, value in config.items()}
        model = cls(**parts, search=search)
        if frozen:
            for number, layer in enumerate(model.backbone._flatten_layers()):  # each before its own layers
                layer.trainable = number not in frozen
        return model

    @classmethod
    def _from_parts(cls, backbone: keras.Model, tokenizers: list, settings: dict) -> Self:
        """Return the translator of a backbone and what `_tokenizers_and_settings` returned."""
        raise NotImplementedError

    def export(
        self,
        filepath: str | os.PathLike,
        beam_size: int | None = None,
        length_penalty: float | Callable | None = None,
        precision: str = "float32",
    ):
        """Write a TensorFlow SavedModel from text to text, with search and tokenizers inside.

        Args:
            filepath: its folder.
            beam_size, length_penalty: as in `Translator.translate`; the rest is as in `search`.
            precision: of the weights: `"float32"`, `"float16"` or `"int8"`.

        Its signatures are those of `kzoo.export.export_saved_model`.
        """
        from kzoo.export import export_saved_model

        export_saved_model(self, filepath, beam_size, length_penalty, precision)

    def _chosen(self, n: int | None, threads: int, **changes) -> tuple[int, SearchSettings]:
        """Return how many hypotheses are asked for, and `search` with the changes that are not `None`.

        Raises:
            UserError: a setting that no search can have; threads below 1; more hypotheses than the beam has.
        """
        search = self.search.changed(**changes)
        n = search.beam_size if n is None else n
        check_whole_numbers(n=n, threads=threads)
        if n > search.beam_size:
            raise UserError(f"{n} best translations need a beam of at least {n}, not {search.beam_size}")
        return n, search

    def _begun(
        self, tokenizer: Tokenizer, prefixes: Iterable[str] | None, count: int, search: SearchSettings
    ) -> list[list[int]] | None:
        """Return the token ids of prefixes, as `tokenize_prefixes` does, with room for an end after them."""
        longest = min(search.max_length or self.backbone.max_length, self.backbone.max_length)
        return tokenize_prefixes(tokenizer, prefixes, count, longest - 1)

    def _forget_compiled(self):
        """Begin without compiled functions of the model."""
        self._searches = BatchedSearch(self, self.backbone.max_length, uses_xla(self.backbone))
        self._attention = SourceAttention(self.backbone)

    def _heed_new_weights(self):
        """Forget functions compiled with weights that are gone: `quantize` and `enable_lora` make others."""
        weights = tuple(map(id, self.backbone.weights))
        if weights != self._compiled_with:
            self._forget_compiled()
            self._compiled_with = weights

    def bake(self):
        """Encode the glyphs of all source characters once, if the model reads glyphs."""
        for layer in self.backbone.layers:
            if hasattr(layer, "bake"):
                layer.bake()

    def encode(self, inputs: dict) -> dict:
        """Return the backbone's memory of `inputs`: the first part of the decoding contract."""
        return self.backbone.encode(inputs)

    def start(self, memory: dict, beam_size: int, max_length: int) -> dict:
        """Return the backbone's state before the first token: the second part of the decoding contract."""
        return self.backbone.start(memory, beam_size, max_length)

    def decode_step(self, tokens, step, memory: dict, state: dict):
        """Return logits and state after the newest tokens: the third part of the decoding contract."""
        return self.backbone.decode_step(tokens, step, memory, state)
