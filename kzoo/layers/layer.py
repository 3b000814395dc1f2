"""What all layers of the zoo have in common."""

import inspect

import keras

# Call arguments with which a layer returns more than one output.
MORE_OUTPUTS = ("return_attention_scores", "cache_index")


class Layer(keras.layers.Layer):
    """A layer whose configuration is its constructor's arguments, and whose own layers are frozen with it.

    Each argument of the constructor is kept as the attribute of its name. The outputs have the shape of the
    first input, unless a layer says otherwise.

    Keras's `trainable = False` reaches the layers that exist at that moment. Those that `build` makes later
    would train: after `trainable=False` in the constructor, and so in every frozen layer that is loaded.
    """

    def _post_build(self):  # Keras's hook after `build`
        super()._post_build()
        if not self.trainable:  # otherwise its layers stay as they are: one of them may be frozen alone
            # Not of the layer itself: on TensorFlow, setting an attribute to what it is does nothing.
            for layer in self._flatten_layers(include_self=False):
                layer.trainable = False

    def compute_output_shape(self, inputs_shape, *others):
        return inputs_shape

    def compute_output_spec(self, *inputs, **options):
        if any(options.get(name) not in (None, False) for name in MORE_OUTPUTS):
            return keras.Operation.compute_output_spec(self, *inputs, **options)  # as `call` returns them
        return super().compute_output_spec(*inputs, **options)

    def get_config(self):
        config = super().get_config()
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
