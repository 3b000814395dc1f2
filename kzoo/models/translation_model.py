"""Base class of every translator: wraps a backbone, with its compiled beam searches."""

import os
from collections.abc import Callable

import keras

from kzoo.decoding.batched_search import BatchedSearch
from kzoo.models.whole_batch_loss import WholeBatchLoss
from kzoo.models.xla import uses_xla


class TranslationModel(WholeBatchLoss, keras.Model):
    """Base class of translators: wraps a backbone that implements the decoding contract of `kzoo.decoding`.

    Args:
        backbone: a backbone such as `TransformerBackbone`.
        **kwargs: other arguments of `keras.Model`.

    Call arguments:
        inputs: as the backbone's.

    Returns:
        Logits `(B, T, V)`.
    """

    def __init__(self, backbone: keras.Model, **kwargs):
        super().__init__(**{"dtype": backbone.dtype_policy, **kwargs})  # the policy decides on loss scaling
        self.backbone = backbone
        self._searches = BatchedSearch(self, backbone.max_length, uses_xla(backbone))
        self.built = True  # like the backbone

    @property
    def image_shape(self) -> tuple[int, ...] | None:
        """The shape of the image that comes with a sentence; `None`: the model reads text only."""
        shape = self.backbone.get_config().get("image_shape")
        return None if shape is None else tuple(shape)

    def call(self, inputs, training=None):
        return self.backbone(inputs, training=training)

    def _resolve_auto_jit_compile(self):
        # For `compile` without `jit_compile`. Keras itself would not use XLA on a CPU, where it is faster,
        # but would on a GPU for switches between languages, which it cannot compile.
        return uses_xla(self.backbone)

    def export(
        self,
        filepath: str | os.PathLike,
        beam_size: int = 5,
        length_penalty: float | Callable = 1.0,
        precision: str = "float32",
    ):
        """Write a TensorFlow SavedModel from text to text, with search and tokenizers inside.

        Args:
            filepath: its folder.
            beam_size: int. Hypotheses kept at each step.
            length_penalty: as in `Translator.translate`.
            precision: of the weights: `"float32"`, `"float16"` or `"int8"`.

        Its signatures are those of `kzoo.export.export_saved_model`.
        """
        from kzoo.export import export_saved_model

        export_saved_model(self, filepath, beam_size, length_penalty, precision)

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
