"""Language-specific layers: one layer per language, selected at run time."""

from collections.abc import Callable, Sequence

import keras
from keras import ops

from kzoo.layers.layer import Layer, all_layers


@keras.saving.register_keras_serializable("kzoo")
class ByLanguage(Layer):
    """One layer per language; each call runs one. The language is a tensor: changing it retraces nothing.

    All sentences of a batch have the same language. The layers must not draw random numbers, which would
    repeat or differ between backends: apply dropout outside. Nor may they add losses or update state. On
    TensorFlow and JAX, the other languages' weights get a gradient of zero, so optimizers with momentum, such
    as Adam, still move them. On torch they get no gradient: Keras warns, and optimizers do not move them.

    Args:
        layers: layers with the same call arguments and output shape, in the order of the languages. Layers
            that need more than the inputs' shape to be built must already be built.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        language: int `(B,)`. Index of the batch's language, repeated B times.
        inputs: tensor. The layers' first argument.
        others: the layers' other arguments, by name. A `mask` is passed on with the output.
        inputs_mask: set by Keras if `inputs` carries a mask; `mask` must then be given too.

    Returns:
        The output of the language's layer.

    Raises:
        ValueError: `inputs` carries a mask, but `mask` is not given.

    Example:

    >>> encoders = ByLanguage([keras.layers.Dense(8), keras.layers.Dense(8)])
    >>> encoders(np.array([1, 1], "int32"), np.ones((2, 5, 4), "float32")).shape
    (2, 5, 8)
    """

    def __init__(self, layers: Sequence[keras.layers.Layer], **kwargs):
        super().__init__(**kwargs)
        self.layers = list(layers)

    def build(self, language_shape, inputs_shape):
        for layer in self.layers:
            if not layer.built:
                layer.build(inputs_shape)

    def call(self, language, inputs, inputs_mask=None, **others):
        if inputs_mask is not None and others.get("mask") is None:
            # It depends on the backend whether this mask reaches the branch and the output.
            raise ValueError(
                f"{self.name} loses the mask that its inputs carry: pass it as mask=…, or pass inputs "
                "without a mask if its layers take none"
            )
        return self.run(language, lambda layer: layer(inputs, **others))

    def run(self, language, function: Callable):
        """Return `function(layer)` for the language's layer, such as `lambda layer: layer.prepare(memory)`.

        The first layer runs, with the weights of the language's: a branch for each language would be traced
        and compiled as often. Layers that differ in more than the values of their weights run in branches.

        Args:
            language: int `(B,)`, as in a call.
            function: takes a layer; its results have the same shapes for every language.
        """
        weights = self.layers[0].weights
        first, *others = map(_settings, self.layers)
        # Weights are read in this layer's precision, which would round those of float32 layers.
        rounded = self.layers[0].compute_dtype != self.compute_dtype
        if not weights or rounded or any(settings != first for settings in others):
            return self.choose(language, function)
        values = self.choose(language, lambda layer: [weight.value for weight in layer.weights])
        with keras.StatelessScope(zip(weights, values, strict=True), initialize_variables=False):
            return function(self.layers[0])

    def choose(self, language, function: Callable):
        """Return the same as `run`, by a branch for each language.

        In a loop on JAX this is faster, because `run` would copy the language's weights at each step.
        """
        return ops.switch(language[0], [lambda layer=layer: function(layer) for layer in self.layers])

    def compute_output_shape(self, language_shape, inputs_shape):
        return self.layers[0].compute_output_shape(inputs_shape)


def _settings(layer: keras.layers.Layer) -> tuple[list, list]:
    """Return what two layers must have in common for one to run with the other's weights."""
    free = {"name": None, "trainable": None}
    configs = [(type(one), one.get_config() | free) for one in all_layers(layer)]
    return configs, [weight.shape for weight in layer.weights]
