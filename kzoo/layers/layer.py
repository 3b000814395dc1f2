"""The layers' base class."""

import inspect
from collections.abc import Callable

import keras


class Layer(keras.layers.Layer):
    """Base class of layers: saves the constructor's arguments and freezes all sublayers with the layer.

    Store each constructor argument in an attribute of the same name. Outputs have the shape and the mask of
    the first input unless a subclass overrides this.

    In Keras, `trainable = False` freezes only the sublayers that exist at that moment. Here it also freezes
    those that `build` creates later, so a frozen layer is still frozen after loading.

    A subclass of a layer may override `call` with `**kwargs`, or without optional inputs such as an `image`.
    """

    def __init_subclass__(cls, **kwargs):
        super().__init_subclass__(**kwargs)
        if "call" in vars(cls):
            _complete_signature(cls.call, super(cls, cls).call, (cls.build, cls.compute_output_shape))

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.supports_masking = True  # pass the mask on

    def _post_build(self):  # private: Keras has no public hook after `build`, which layers override
        super()._post_build()
        if not self.trainable:  # otherwise leave the sublayers as they are: some may be frozen
            # Not `self.trainable = False`: on TensorFlow, setting an attribute to its own value does nothing.
            for layer in all_layers(self)[1:]:
                layer.trainable = False

    def compute_output_shape(self, inputs_shape, *others):
        return inputs_shape

    def compute_output_spec(self, *inputs, **options):
        # With either of these, a layer returns more than one output.
        if options.get("return_attention_scores") or options.get("cache_index") is not None:
            return keras.Operation.compute_output_spec(self, *inputs, **options)  # traces `call`
        return super().compute_output_spec(*inputs, **options)

    def get_config(self):
        config = super().get_config()
        # By the signature: written out, each layer would name its arguments once more.
        for kind in type(self).__mro__:
            if not issubclass(kind, Layer):
                break
            for name, parameter in inspect.signature(kind.__init__).parameters.items():
                if parameter.kind is parameter.POSITIONAL_OR_KEYWORD and hasattr(self, name):
                    value = getattr(self, name)
                    layers = isinstance(value, keras.layers.Layer | list)
                    config[name] = keras.saving.serialize_keras_object(value) if layers else value
        return config

    @classmethod
    def from_config(cls, config):
        layers = {
            name: keras.saving.deserialize_keras_object(value)
            for name, value in config.items()
            if isinstance(value, dict | list) and name != "dtype"
        }
        return super().from_config({**config, **layers})


def all_layers(layer: keras.layers.Layer) -> list[keras.layers.Layer]:
    """Return a layer or model, then its sublayers and theirs, outer ones first."""
    return layer._flatten_layers()  # private: Keras has no public way to list the layers of layers


def _complete_signature(call: Callable, overridden: Callable, matched: tuple[Callable, ...]):
    """Complete the signature of a subclass's `call`, which Keras reads.

    Keras passes masks and `training` only to arguments with these names, so `**kwargs` counts as the
    arguments of the `overridden` method. For `build(inputs_shape, image_shape=None)`, it needs an argument
    `image`.
    """
    own = inspect.signature(call).parameters
    kinds, added = {one.kind for one in own.values()}, {}
    for one in inspect.signature(overridden).parameters.values():
        if one.VAR_KEYWORD in kinds and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD):
            added[one.name] = one if one.VAR_POSITIONAL in kinds else one.replace(kind=one.KEYWORD_ONLY)
    for method in matched:
        for shape in inspect.signature(method).parameters.values():
            name = shape.name.removesuffix("_shape")
            if shape.default is None:
                added.setdefault(name, inspect.Parameter(name, shape.KEYWORD_ONLY, default=None))
    added = [one for name, one in added.items() if name not in own]
    if added:
        # Otherwise, each subclass would have to repeat the optional inputs that it only passes on.
        call.__signature__ = inspect.Signature(sorted([*own.values(), *added], key=lambda one: one.kind))
