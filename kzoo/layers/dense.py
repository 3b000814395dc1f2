"""Dense layers that train fast on a CPU under JAX, and the sums and products that they share."""

from collections.abc import Callable

import keras
import numpy as np
from keras import ops

FACTORS = "lora_kernel_a", "lora_kernel_b"  # the attributes and variables of LoRA


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


class Adaptable:
    """Mixin for a layer with a `_kernel` and LoRA's factors beside it: saves, loads and merges them."""

    def save_own_variables(self, store):
        """Save LoRA's factors beside the kernel, so that training can go on: Keras saves the sum alone."""
        if not self.lora_enabled or self.quantization_mode:
            super().save_own_variables(store)
            return
        store["0"] = self._kernel  # private: with LoRA, `kernel` is the sum
        if self.bias is not None:
            store["1"] = self.bias
        for name in FACTORS:
            store[name] = getattr(self, name)
        store["lora_scale"] = self.lora_alpha / self.lora_rank

    def load_own_variables(self, store):
        """Load what was saved; without LoRA, the kernel with the product of the factors."""
        if FACTORS[0] not in store:
            if not self.lora_enabled or self.quantization_mode:
                super().load_own_variables(store)
            else:
                self._assign(store["0"], store)
            if self.lora_enabled:  # of two zeros, as Keras assigns them, the gradients are 0 for ever
                for name, initializer in zip(FACTORS, ("he_uniform", "zeros"), strict=True):
                    factor = getattr(self, name)
                    factor.assign(keras.initializers.get(initializer)(factor.shape))
            return
        kernel, factors = store["0"], [store[name] for name in FACTORS]
        if self.lora_enabled:
            for name, values in zip(FACTORS, factors, strict=True):
                getattr(self, name).assign(values)
        else:
            kernel = kernel + store["lora_scale"] * np.matmul(*factors)
        self._assign(kernel, store)

    def _assign(self, kernel, store):
        self._kernel.assign(kernel)
        if self.bias is not None:
            self.bias.assign(store["1"])

    @property
    def _kernels(self) -> list:
        """The variables that do not learn while there are factors."""
        return [self._kernel]

    def merge_lora(self):
        """Add the product of LoRA's factors to the kernel, and drop them."""
        scale = self.lora_alpha / self.lora_rank
        self._kernel.assign_add(scale * ops.matmul(*(getattr(self, name) for name in FACTORS)))
        for kernel in self._kernels:
            kernel.trainable = True
        for name in FACTORS:
            # Private: `del` would also collect garbage for each factor: 20 s of work for a small Transformer.
            self._untrack_variable(getattr(self, name))
            setattr(self, name, None)
        self.lora_enabled, self.lora_rank, self.lora_alpha = False, None, None


@keras.saving.register_keras_serializable("kzoo")
class Dense(Adaptable, Quantizable, keras.layers.Dense):
    """`keras.layers.Dense`, faster to train on a CPU under JAX; the bias is added by `add_bias`."""

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

    def quantized_build(self, embeddings_shape, mode, config=None):
        super().quantized_build(embeddings_shape, mode, config)
        if mode == "int4" and config is None:  # from a file, which names the mode alone: as `quantize` chose
            self.inputs_quantizer = None

    def call(self, inputs, reverse=False):
        if not reverse or not self.tie_weights or self.logit_soft_cap is not None:
            return super().call(inputs, reverse)
        dtype = self.reverse_dtype or self.compute_dtype
        kernel = ops.cast(ops.transpose(self.embeddings), dtype)
        return on_rows(lambda x: ops.matmul(ops.cast(x, dtype), kernel), inputs)
