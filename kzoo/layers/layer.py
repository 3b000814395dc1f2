"""The layers' base class, and dense layers that train fast on a CPU under JAX."""

import inspect
from collections.abc import Callable

import keras
from keras import ops


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

    def _post_build(self):  # Keras's hook after `build`
        super()._post_build()
        if not self.trainable:  # otherwise leave the sublayers as they are: some may be frozen
            # Not `self.trainable = False`: on TensorFlow, setting an attribute to its own value does nothing.
            for layer in self._flatten_layers(include_self=False):
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
        call.__signature__ = inspect.Signature(sorted([*own.values(), *added], key=lambda one: one.kind))


def on_rows(function: Callable, x):
    """Apply a function of a matrix `(N, D)` to the rows of `x` `(…, D)`.

    On a CPU, JAX computes a kernel's gradient from `(B, L, D)` up to 4 times as slowly as from a matrix,
    because it copies a transposed tensor.
    """
    if len(x.shape) == 2:
        return function(x)
    shape = ops.shape(x)
    rows = function(ops.reshape(x, (-1, shape[-1])))
    return ops.reshape(rows, (*shape[:-1], rows.shape[-1]))


class Quantizable:
    """Mixin that lets Keras quantize a subclass of its own layer; by default `type_check` prevents this."""

    def quantize(self, mode=None, type_check=True, config=None):
        super().quantize(mode, type_check=False, config=config)


@keras.saving.register_keras_serializable("kzoo")
class Dense(Quantizable, keras.layers.Dense):
    """`keras.layers.Dense`, faster to train on a CPU under JAX; the bias is added by `add_bias`."""

    def load_own_variables(self, store):
        super().load_own_variables(store)
        if self.lora_enabled:  # Keras zeroes both factors, whose gradients are then 0 for ever
            drawn = keras.initializers.HeUniform()(self.lora_kernel_a.shape)  # as `enable_lora` does
            self.lora_kernel_a.assign(drawn)

    def call(self, inputs, training=None):
        return on_rows(self._of_rows, inputs)

    def _of_rows(self, x):
        x = ops.matmul(x, self.kernel)
        if self.bias is not None:
            x = add_bias(x, self.bias)
        return x if self.activation is None else self.activation(x)


def add_bias(x, bias):
    """Return `x` `(N, D)` plus `bias` `(D,)`.

    TensorFlow sums the gradient of a bias in the gradient's own precision, row after row: in bfloat16, 4,096
    ones make 256. So in half precision the sum is computed as a matrix product, which accumulates in float32.
    """
    half = keras.backend.standardize_dtype(x.dtype) in ("bfloat16", "float16")
    if half and keras.backend.backend() == "tensorflow":
        return _add_bias(x, ops.cast(bias, x.dtype))
    return ops.add(x, bias)


@ops.custom_gradient
def _add_bias(x, bias):
    def gradients(upstream):
        ones = ops.ones((1, ops.shape(upstream)[0]), upstream.dtype)
        return upstream, ops.matmul(ones, upstream)[0]

    return ops.add(x, bias), gradients


@keras.saving.register_keras_serializable("kzoo")
class ReversibleEmbedding(Quantizable, keras.layers.ReversibleEmbedding):
    """`keras.layers.ReversibleEmbedding`, faster to train: on a CPU under JAX, and in half precision.

    `reverse_dtype` is the layer's compute dtype by default. Keras's default is float32 inside a model of
    mixed precision: with AMX, a bfloat16 step of Transformer base then took 1.1 times as long.
    """

    def call(self, inputs, reverse=False):
        if not reverse or not self.tie_weights or self.logit_soft_cap is not None:
            return super().call(inputs, reverse)
        dtype = self.reverse_dtype or self.compute_dtype
        kernel = ops.cast(ops.transpose(self.embeddings), dtype)
        return on_rows(lambda x: ops.matmul(ops.cast(x, dtype), kernel), inputs)
