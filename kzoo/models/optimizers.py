"""Keras's optimizers, with clipping of the whole batch's gradient on any number of devices."""

import keras


class WholeBatchClipping:
    """Mixin: `global_clipnorm` clips the whole batch's gradient, not each replica's.

    Under `tf.distribute` Keras clips each replica's gradient and then adds them: several short steps that
    differ from one device's step. Here the gradients are added first.
    """

    def _clip_gradients(self, grads):
        strategy = getattr(self, "_distribution_strategy", None)  # TensorFlow's optimizers have one
        if strategy is None or strategy.num_replicas_in_sync == 1 or not self.global_clipnorm:
            return super()._clip_gradients(grads)
        whole = [gradient for gradient, _ in self._all_reduce_sum_gradients(zip(grads, grads, strict=True))]
        # Keras then adds the replicas' gradients: each contributes its part of the clipped one.
        return [
            None if gradient is None else gradient / strategy.num_replicas_in_sync
            for gradient in super()._clip_gradients(whole)
        ]


@keras.saving.register_keras_serializable("kzoo")
class Adam(WholeBatchClipping, keras.optimizers.Adam):
    """`keras.optimizers.Adam`; with `global_clipnorm` the same on any number of devices."""


@keras.saving.register_keras_serializable("kzoo")
class SGD(WholeBatchClipping, keras.optimizers.SGD):
    """`keras.optimizers.SGD`; with `global_clipnorm` the same on any number of devices."""
