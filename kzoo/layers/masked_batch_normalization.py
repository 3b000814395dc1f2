"""Batch normalization of images, of which some only fill a batch up."""

import keras
from keras import ops

from kzoo.layers.weighted_moments import weighted_moments


@keras.saving.register_keras_serializable("kzoo")
class MaskedBatchNormalization(keras.layers.Layer):
    """Batch normalization whose statistics are those of the rows that count, on all replicas.

    Keras's own takes rows that fill a batch up for images, unless it is given a mask, which it does not
    share among replicas.

    Args:
        momentum: float. Share of the stored statistics that a batch leaves. Defaults to `0.9`.
        epsilon: float. Added to the variance. Defaults to `1e-3`.
        **kwargs: other arguments of `keras.layers.Layer`.

    Call arguments:
        inputs: `(B, …, F)`.
        present: bool `(B,)`. `True` at rows that count; all by default.
        training: bool. Whether the batch's statistics normalize, and move the stored ones.

    Reference:
        Ioffe and Szegedy 2015, "Batch Normalization". https://arxiv.org/abs/1502.03167
    """

    def __init__(self, momentum: float = 0.9, epsilon: float = 1e-3, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum
        self.epsilon = epsilon

    def build(self, inputs_shape):
        F = (inputs_shape[-1],)
        self.gamma = self.add_weight(F, "ones", autocast=False, name="gamma")
        self.beta = self.add_weight(F, "zeros", autocast=False, name="beta")
        stored = {"autocast": False, "trainable": False}
        self.moving_mean = self.add_weight(F, "zeros", **stored, name="moving_mean")
        self.moving_variance = self.add_weight(F, "ones", **stored, name="moving_variance")

    def call(self, inputs, present=None, training: bool | None = None):
        x = ops.cast(inputs, "float32")
        mean, variance = self.moving_mean, self.moving_variance
        if training and self.trainable:
            rows = ops.reshape(x, (ops.shape(x)[0], -1, x.shape[-1]))  # (B, N, F)
            counts = ops.ones_like(rows[:, :, 0])
            if present is not None:
                counts *= ops.cast(present, "float32")[:, None]
            mean, variance = weighted_moments(
                ops.reshape(rows, (-1, x.shape[-1])), ops.reshape(counts, (-1,))
            )
            for stored, new in ((self.moving_mean, mean), (self.moving_variance, variance)):
                stored.assign(self.momentum * stored + (1 - self.momentum) * new)
        x = (x - mean) * ops.rsqrt(variance + self.epsilon) * self.gamma + self.beta
        return ops.cast(x, self.compute_dtype)

    def compute_output_shape(self, inputs_shape):
        return inputs_shape

    def get_config(self):
        return {**super().get_config(), "momentum": self.momentum, "epsilon": self.epsilon}
