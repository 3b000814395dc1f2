"""A learning-rate schedule, and optimizers that add up a gradient before they square or clip it.

The schedule is that of "Attention Is All You Need".
"""

import functools
import warnings

import keras
from keras import ops


@keras.saving.register_keras_serializable("kzoo")
class NoamSchedule(keras.optimizers.schedules.LearningRateSchedule):
    """Linear warm-up, then decay with the inverse square root of the step.

        rate(step) = factor · width^-0.5 · min(step^-0.5, step · warmup_steps^-1.5),   step = 1, 2, …

    Its peak is factor / sqrt(width · warmup_steps), at step `warmup_steps`.

    Args:
        width: int. D, the model's width.
        warmup_steps: int. Steps until the peak. Defaults to `4000`.
        factor: float. Defaults to `1`.
        batches_per_step: int. Batches whose gradients the optimizer accumulates per step. Needed because
            Keras passes the number of batches to a schedule. Defaults to `1`.

    Example:

    >>> round(float(NoamSchedule(width=512)(3999)), 6)
    0.000699

    Reference:
        Vaswani et al. 2017, "Attention Is All You Need", Eq. 3. https://arxiv.org/abs/1706.03762
    """

    def __init__(self, width: int, warmup_steps: int = 4000, factor: float = 1.0, batches_per_step: int = 1):
        super().__init__()
        self.width = width
        self.warmup_steps = warmup_steps
        self.factor = factor
        self.batches_per_step = batches_per_step

    def __call__(self, step):
        step = ops.cast(step // self.batches_per_step, "float32") + 1.0
        return self.factor * self.width**-0.5 * ops.minimum(ops.rsqrt(step), step * self.warmup_steps**-1.5)

    def get_config(self):
        names = ("width", "warmup_steps", "factor", "batches_per_step")
        return {name: getattr(self, name) for name in names}


class WholeGradients:
    """Mixin that adds up the parts of a gradient before they are squared or clipped.

    On TensorFlow, the gradient of an embedding has a part for each occurrence of a token. Keras squares these
    parts one by one, so that the norm and Adam's second moment of a frequent token are wrong. Under
    `tf.distribute`, Keras clips each replica's gradient by `global_clipnorm`, not the whole batch's.
    """

    def apply(self, grads, trainable_variables=None):
        grads = [None if gradient is None else _dense(gradient) for gradient in grads]
        if self.global_clipnorm and replicas() > 1:
            grads = _clipped(grads, self.global_clipnorm * (self.loss_scale_factor or 1))
        super().apply(grads, trainable_variables)


def replicas() -> int:
    """Return the number of replicas of `tf.distribute` that share a batch; without it, 1."""
    if keras.backend.backend() != "tensorflow":
        return 1
    import tensorflow as tf

    return tf.distribute.get_strategy().num_replicas_in_sync


def _dense(gradient):
    """Return a gradient with the parts of each row added."""
    if keras.backend.backend() != "tensorflow":
        return gradient
    import tensorflow as tf

    if not isinstance(gradient, tf.IndexedSlices):
        return gradient
    return tf.math.unsorted_segment_sum(gradient.values, gradient.indices, gradient.dense_shape[0])


def _clipped(gradients: list, norm: float) -> list:
    """Return a replica's part of the sum of all replicas' gradients, clipped: Keras adds these parts."""
    import tensorflow as tf

    own = [gradient for gradient in gradients if gradient is not None]
    whole = tf.distribute.get_replica_context().all_reduce("SUM", own)
    parts = iter(tf.clip_by_global_norm(whole, norm)[0])
    return [None if gradient is None else next(parts) / replicas() for gradient in gradients]


class WarnsOfSparseGradients:
    """Mixin: `compile` warns of an optimizer that takes gradients part by part; see `WholeGradients`.

    Attributes:
        sparse_gradients: bool. Whether the model looks up vectors in a table, whose gradient has parts.
    """

    sparse_gradients = True

    @functools.wraps(keras.Model.compile)
    def compile(self, *args, **kwargs):
        super().compile(*args, **kwargs)
        if self.sparse_gradients and self.optimizer:
            warn_of_sparse_gradients(self.optimizer)

    def compile_from_config(self, config):
        # Keras's own does not call a `compile` of ours. A file has its compilation for the backend and the
        # devices that saved it.
        self.compile(**keras.saving.deserialize_keras_object({**config, "jit_compile": "auto"}))
        self.optimizer.build(self.trainable_variables)


def warn_of_sparse_gradients(optimizer: keras.optimizers.Optimizer):
    """Warn if an optimizer squares or clips the parts of a gradient one by one."""
    optimizer = getattr(optimizer, "inner_optimizer", optimizer)  # of one that scales the loss
    if keras.backend.backend() != "tensorflow" or isinstance(optimizer, WholeGradients):
        return
    clips = optimizer.clipnorm or optimizer.global_clipnorm or optimizer.clipvalue
    if clips or type(optimizer) is not keras.optimizers.SGD:
        name = type(optimizer).__name__
        warnings.warn(
            f"on TensorFlow, keras.optimizers.{name} squares or clips a frequent token's gradient part by "
            "part: use Adam, Adagrad or SGD of kzoo.models",
            stacklevel=3,
        )


@keras.saving.register_keras_serializable("kzoo")
class Adam(WholeGradients, keras.optimizers.Adam):
    """`keras.optimizers.Adam`, the same on all backends; with `global_clipnorm`, on any number of devices.

    Keras adds ε before it corrects v, as Kingma and Ba do at the end of their Section 2; PyTorch after it, as
    their Algorithm 1 does. So ε is PyTorch's ε / √(1 − β₂^t): with β₂ = 0.999, 32 times as large at the first
    step, 1.3 times at the 1,000th.
    """


@keras.saving.register_keras_serializable("kzoo")
class SGD(WholeGradients, keras.optimizers.SGD):
    """`keras.optimizers.SGD`, the same on all backends; with `global_clipnorm`, on any number of devices."""


@keras.saving.register_keras_serializable("kzoo")
class Adagrad(WholeGradients, keras.optimizers.Adagrad):
    """`keras.optimizers.Adagrad`, the same on all backends; with `global_clipnorm`, on several devices."""
