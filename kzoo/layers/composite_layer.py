"""What all layers of the zoo that are made of other layers have in common."""

import keras


class CompositeLayer(keras.layers.Layer):
    """A layer made of other layers, which are frozen with it whenever they are made.

    Keras's `trainable = False` reaches the layers that exist at that moment. Those that `build` makes later
    would train: after `trainable=False` in the constructor, and so in every frozen layer that is loaded.
    """

    def _post_build(self):  # Keras's hook after `build`
        super()._post_build()
        if not self.trainable:  # otherwise its layers stay as they are: one of them may be frozen alone
            # Not of the layer itself: on TensorFlow, setting an attribute to what it is does nothing.
            for layer in self._flatten_layers(include_self=False):
                layer.trainable = False
