"""The backbones' base class, compilation and argument checks, and the glyph embedding."""

import inspect
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal, get_args, get_origin

import keras
import numpy as np
from keras_hub.models import Backbone
from keras_hub.tokenizers import Tokenizer

from kzoo.errors import UserError, nearest
from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.layers.layer import all_layers
from kzoo.sizes import check_choice, check_dropout, check_sizes

KERAS_ARGUMENTS = ("dtype", "name", "trainable")  # of every backbone, saved by Keras


# How `ModelParallel` splits the weights with matching paths: along the axis `MODEL`. All other weights are
# copied to every device. A projection to an inner width is split by its outputs, and the projection back by
# its inputs, so that the activations between them stay split (Shoeybi et al. 2019,
# https://arxiv.org/abs/1909.08053, Section 3). Embeddings and output projections are split along the model's
# width, because a vocabulary's size may not be divisible. So are recurrent kernels, whose outputs are several
# gates side by side.
MODEL = "model"
BY_OUTPUTS, BY_INPUTS = (None, MODEL), (MODEL, None)
EMBEDDINGS = {  # of all families
    r"(.*_)?embedding/(embeddings|table)": BY_OUTPUTS,
    r".*glyph_encoder/features/kernel": BY_OUTPUTS,
    r".*glyph_encoder/output/kernel": BY_INPUTS,
}


class TranslationBackbone(Backbone):
    """Base class of backbones: a constructor passes its arguments to `_keep`, which saves them.

    Attributes:
        layouts: how several devices split the model's large weights: axes by a pattern of a weight's path.
        source_embedding: the layer that embeds the source, if all sources have the same.
    """

    layouts: dict[str, tuple[str | None, ...]] = {}
    source_embedding: keras.layers.Layer | None = None

    def compile_arguments(self) -> dict:
        """Return arguments of `compile`: the optimizer and the loss of the paper whose model this is."""
        raise NotImplementedError

    def embedded_source(self, inputs: dict):
        """Return the vectors `(B, S, D)` of `inputs["source"]`; `inputs["drawn"]` as for `GlyphEmbedding`."""
        drawn = {"drawn": inputs["drawn"]} if "drawn" in inputs else {}
        return self.source_embedding(inputs["source"], **drawn)

    def merge_lora(self):
        """Add the factors of `enable_lora` to the kernels, so that a preset can hold the model.

        Afterwards, all weights are trainable. To train on, compile again.
        """
        for layer in all_layers(self):
            if getattr(layer, "lora_enabled", False):
                layer.merge_lora()
            layer.trainable = True

    def _keep(self, kind: type, arguments: dict):
        """Check a constructor's arguments and keep them for `get_config`, except Keras's own.

        Args:
            kind: the constructor's class.
            arguments: its `locals()`.

        Raises:
            ValueError: an argument annotated `Literal` that is none of the choices; one annotated `int` that
                is not a whole number of at least 1, or is too large to build; one annotated `Sequence[int]`
                that is empty or contains such a number (either may be optional); a dropout outside [0, 1).
        """
        # By the signature: written out, each backbone would name its arguments three times more.
        parameters = inspect.signature(kind.__init__).parameters
        own = {name: arguments[name] for name in parameters if name not in ("self", *KERAS_ARGUMENTS)}
        for name, value in own.items():
            parameter = parameters[name]
            if parameter.annotation is int or (parameter.annotation == int | None and value is not None):
                check_sizes(name, value)
            elif parameter.annotation in (Sequence[int], Sequence[int] | None) and value is not None:
                check_sizes(name, list(value))
            elif get_origin(parameter.annotation) is Literal:
                check_choice(name, value, get_args(parameter.annotation))
            elif name.endswith("dropout"):
                check_dropout(name, value)
        self._settings = {n: list(value) if isinstance(value, tuple) else value for n, value in own.items()}

    def get_config(self):
        config = {**super().get_config(), **self._settings}
        if isinstance(self.source_embedding, GlyphEmbedding):  # save its encoder's defaults too
            encoder = self.source_embedding.encoder
            form = {"architecture": encoder.architecture, "num_features": encoder.num_features}
            config["glyph_options"] = {**config["glyph_options"], **form}
        return config


class Waiting(keras.StatelessScope):
    """A scope in which variables wait for their values: those assigned in it, or else initial ones.

    They get them at its end; inside `without_values`, they never do.
    """

    def add_update(self, update):
        variable, value = update
        # Any operation: until the next one, TensorFlow also keeps the NumPy array that the value comes from.
        value = keras.ops.stop_gradient(value)
        self._begin_with(variable, lambda: value)

    def give(self, variable: keras.Variable, read: Callable[[], np.ndarray]):
        """Assign what a function returns; inside `without_values`, it is called whenever that is needed."""
        if self.original_scope is None:
            variable.assign(read())
        else:
            self._begin_with(variable, read)

    def _begin_with(self, variable: keras.Variable, read: Callable):
        # Private: Keras has no public way to give a variable of such a scope its first value.
        variable._initializer = lambda shape, dtype: read()


def without_initial_values(make: Callable[[], keras.Model]) -> keras.Model:
    """Return the model that a function builds and assigns weights of: these get no initial values before.

    With initial values, loading M2M-100 takes twice as long, and twice the memory of its weights.
    """
    with Waiting():
        return make()


def without_values(function: Callable):
    """Return what a function returns that builds models, whose variables get no values.

    Those given by `Waiting.give` are read where they are used, such as to save them: a model larger than the
    memory can be converted.
    """

    def run():
        with keras.StatelessScope(initialize_variables=False):
            return function()

    # In a new thread, because Keras keeps the list of variables to initialize per thread.
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(run).result()


def uses_xla(backbone: keras.Model, few_calls: bool = False) -> bool:
    """Return `jit_compile` for a backbone's functions: whether to compile them with XLA.

    A backbone lists in `xla_backends` the backends on which XLA compiles it; without the attribute, none.
    XLA is not used under `tf.distribute`: compiled code reads an embedding only on the first device (keras
    issues 18145 and 20763).

    Args:
        backbone: the model.
        few_calls: whether the function will only run on a few single sentences. On TensorFlow, compiling with
            XLA then takes longer than it saves.
    """
    backend = keras.backend.backend()
    if backend == "tensorflow":
        import tensorflow as tf

        if few_calls or tf.distribute.has_strategy():
            return False
    return backend in getattr(backbone, "xla_backends", ())


class BackboneMethod(keras.Model):
    """A function of a backbone's inputs, such as `backbone.matrix`, compiled by `predict_on_batch`."""

    def __init__(self, backbone: keras.Model, method: Callable, few_calls: bool = False):
        super().__init__()
        self.backbone = backbone
        self._method = method
        self.built = True  # it has no weights of its own
        self.compile(jit_compile=uses_xla(backbone, few_calls))

    def call(self, inputs):
        return self._method(inputs)


def token_inputs(*sides: str) -> dict:
    """Return a backbone's inputs of token ids `(B, L)`, by name."""
    return {side: keras.Input((None,), dtype="int32", name=side) for side in sides}


def glyph_embedding(kind: str, size: int, width: int, glyph_options: dict, dtype) -> GlyphEmbedding | None:
    """Return a glyph embedding of `size` characters and width `width`; `None` for `"lookup"`.

    Args:
        kind: `"lookup"`: a table of vectors; `"glyph"`: vectors computed from the characters' bitmaps.
        glyph_options: arguments of `GlyphCharEncoder`.

    Raises:
        ValueError: options that the kind does not take.
    """
    if kind == "lookup":
        if glyph_options:
            raise ValueError(f"source_embedding={kind!r} takes no glyph_options, not {glyph_options!r}")
        return None
    if glyph_options.get("num_features") is not None:
        check_sizes("num_features", glyph_options["num_features"])
    encoder = GlyphCharEncoder(width, **glyph_options, dtype=dtype, name="glyph_encoder")
    return GlyphEmbedding(size, encoder, dtype=dtype, name="source_embedding")


def unit_normal() -> keras.initializers.Initializer:
    """Return the initializer of a recurrent network's token embeddings.

    Keras's default, ±0.05, is too small to affect the network much. After 330 batches, a bridge model had a
    loss per sentence of 97 with the default and of 89 with this one; at three times the rate, 89 and 81.
    """
    return keras.initializers.RandomNormal(stddev=1.0)


def is_quantized(backbone: keras.Model) -> bool:
    """Return whether Keras's `quantize` was applied to a backbone."""
    return any(getattr(layer, "quantization_mode", None) for layer in all_layers(backbone))


def frozen_layers(model: keras.Model) -> list[int]:
    """Return the numbers of a model's frozen layers, for its configuration, which does not say it."""
    return [number for number, layer in enumerate(all_layers(model)) if not layer.trainable]


def freeze(model: keras.Model, frozen: list[int]):
    """Freeze the layers that `frozen_layers` returned."""
    if not frozen:
        return
    # Outer layers come first: setting `trainable` also sets it for the inner layers.
    for number, layer in enumerate(all_layers(model)):
        layer.trainable = number not in frozen


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
            "vocabulary sizes by name"
        )
    return tokenizer.vocabulary_size()


def check_names(settings: dict, *functions: Callable):
    """Raise `UserError` for a setting that is not an optional argument of one of `functions`."""
    parameters = [p for function in functions for p in inspect.signature(function).parameters.values()]
    known = [p.name for p in parameters if p.default is not p.empty]
    for name in settings:
        if name not in known:
            raise UserError(f"there is no argument {name!r}; {nearest(name, known)}")
