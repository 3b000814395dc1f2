#!/usr/bin/env bash
# Keras averages weights once per batch, not once per update, if gradients are accumulated.
#
# An expert expects: `gradient_accumulation_steps=N` with batches of B is training with batches of N·B. So five updates give
# the same weights and, with `use_ema=True`, the same averaged weights.
# What happens: the weights agree, but the average moves after every batch, N times for each update, although the weights
# do not change in between. A momentum m acts about like m to the power N: 0.9 and N = 4 like 0.66. The average
# follows the last updates instead of smoothing over many.
# Why it matters: translators are trained on few GPUs with 8 or 16 accumulated batches, and the averaged weights are those
# that are kept. With 0.999 and N = 16 the window shrinks from 1,000 updates to about 60, with no message, and a recipe
# gives other averages on a machine that needs accumulation. Raise the momentum to about its N-th root.
#
# Versions: keras 3.15.1 on JAX 0.10.2; the same values on TensorFlow 2.21.0 and torch 2.13.0.
# Source: keras/src/optimizers/base_optimizer.py and backend/jax/optimizer.py, `_backend_apply_gradients`. The page
# keras.io/api/optimizers says only that `ema_overwrite_frequency` counts accumulated iterations.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2 jaxlib==0.10.2

KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import jax
import keras
import numpy as np

print("keras", keras.__version__, "jax", jax.__version__)
UPDATES, MOMENTUM, ACCUMULATED = 5, 0.9, 4
ONE = np.ones(1, "float32")


def train(accumulate):
    """Return the weight after five updates by 1, and its average."""
    weight = keras.Variable(0 * ONE)
    optimizer = keras.optimizers.SGD(
        1.0, use_ema=True, ema_momentum=MOMENTUM, gradient_accumulation_steps=accumulate
    )
    for _ in range(UPDATES * (accumulate or 1)):
        optimizer.apply([keras.ops.convert_to_tensor(-ONE)], [weight])
    assert int(optimizer.iterations) == UPDATES
    return [float(v.value[0]) for v in (weight, optimizer._model_variables_moving_average[0])]


def expected(times):
    """Return the average of the weights 1, 2, … 5 if it moves so often after each update but the last."""
    average = 1.0
    for weight in range(2, UPDATES + 1):
        moves = times if weight < UPDATES else 1
        average = weight + (average - weight) * MOMENTUM**moves
    return average


whole, accumulated = train(None), train(ACCUMULATED)
print(f"weight {whole[0]}, average {whole[1]:.4f}; by the definition {expected(1):.4f}")
print(f"accumulated: weight {accumulated[0]}, average {accumulated[1]:.4f}; moved {ACCUMULATED} times {expected(4):.4f}")
assert whole[0] == accumulated[0] == UPDATES
assert abs(whole[1] - expected(1)) < 1e-5
assert abs(accumulated[1] - expected(ACCUMULATED)) < 1e-5
assert accumulated[1] > whole[1] + 0.9
PYTHON
