#!/usr/bin/env bash
# `model.trainable = True` after `enable_lora` unfreezes the whole kernels on JAX, and changes nothing on TensorFlow.
#
# An expert expects: the same line does the same on every backend. `layer.trainable = True` either unfreezes the variables
# that were frozen one by one, or leaves them frozen.
# What happens: Keras's setter unfreezes every variable of the layer, those that `enable_lora` froze too. On TensorFlow the
# setter is not called if the layer has that value already, because an attribute that gets its own value is not set again.
# So on TensorFlow the line is without effect, and LoRA goes on; on JAX the full kernels learn beside their factors. No
# message says so. Only setting False first, then True, unfreezes on both.
# Why it matters: to fine-tune a translator, one freezes it, adds LoRA, and sets parts to trainable. On JAX, this trains all
# weights: the optimizer takes the memory of full fine-tuning, and the saved factors alone do not give the model.
# `MultiHeadAttention` and `Dense` of kzoo therefore set each kernel by itself.
#
# Versions: keras 3.15.1, TensorFlow 2.21.0, JAX 0.10.2.
# Source: keras/src/layers/layer.py, `Layer.trainable`; backend/tensorflow/trackable.py, `KerasAutoTrackable.__setattr__`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0 jax==0.10.2 jaxlib==0.10.2

cat > "$folder/check.py" <<'PYTHON'
import keras
import numpy as np

keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(3)])
layer = model.layers[0]
layer.enable_lora(2)
frozen = [weight.name for weight in model.trainable_weights]
model.trainable = True
again = [weight.name for weight in model.trainable_weights]
kernel = np.array(layer._kernel)
model.compile(keras.optimizers.SGD(0.1), "mse")
inputs = np.random.default_rng(1).standard_normal((32, 4)).astype("float32")
model.fit(inputs, inputs[:, :3], verbose=0)
learned = not np.array_equal(kernel, np.array(layer._kernel))
backend = keras.backend.backend()
print(f"keras {keras.__version__} on {backend}: trainable {frozen}, after trainable = True {again}, kernel learned: {learned}")
assert "kernel" not in frozen
assert learned == ("kernel" in again) == (backend == "jax")
PYTHON
for backend in tensorflow jax; do
    KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/check.py" 2> "$folder/log" || { cat "$folder/log"; exit 1; }
done
