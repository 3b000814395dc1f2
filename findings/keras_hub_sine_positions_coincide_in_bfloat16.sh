#!/usr/bin/env bash
# KerasHub's sine positions are wrong in bfloat16, and from position 256 on two neighbours have the same one.
#
# An expert expects: in mixed precision, a table that does not depend on the data is computed in float32 and then
# rounded, so that each value is right to the last digit of bfloat16 (0.004) and no two positions are equal. KerasHub's
# `RotaryEmbedding` does so.
# What happens: `SinePositionEncoding` rounds the positions and their products with the frequencies to the compute type
# before it takes the sine. bfloat16 has eight binary digits: 257 becomes 256, and an angle of 100 is known to a
# quarter. Before position 32, values between -1 and 1 are off by up to 0.07, before 128 by 0.26, and then by 1.6: any
# value. In float16 it is 0.005, 0.02 and 0.2. Nothing is printed.
# Why it matters: it is KerasHub's layer for the positions of "Attention Is All You Need", and `mixed_bfloat16` is how
# Transformers are trained on GPUs and TPUs. A model trained in float32 reads other positions in bfloat16, and of texts
# of more than 256 tokens the order of neighbours is lost. Pass `dtype="float32"` to this layer.
#
# Versions: keras-hub 0.32.0, keras 3.15.1, jax 0.10.2. Source:
# keras_hub/src/layers/modeling/sine_position_encoding.py, `call`; rotary_embedding.py beside it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras-hub==0.32.0 keras==3.15.1 jax==0.10.2 jaxlib==0.10.2

KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
import keras
import keras_hub
import numpy as np
from keras import ops

print("keras-hub", keras_hub.__version__, "keras", keras.__version__, "on", keras.backend.backend())
LENGTH, WIDTH = 512, 64
angles = np.arange(LENGTH)[:, None] * 10000.0 ** -(np.arange(WIDTH) // 2 * 2 / WIDTH)
right = np.where(np.arange(WIDTH) % 2, np.cos(angles), np.sin(angles))

for policy in ("float32", "mixed_float16", "mixed_bfloat16"):
    layer = keras_hub.layers.SinePositionEncoding(dtype=policy)
    found = ops.convert_to_numpy(ops.cast(layer(ops.zeros((1, LENGTH, WIDTH)))[0], "float32"))
    errors = np.abs(found - right).max(axis=1)
    rounding = np.abs(ops.convert_to_numpy(ops.cast(ops.cast(right, layer.compute_dtype), "float32")) - right).max()
    same = int((found[1:] == found[:-1]).all(axis=1).sum())
    print(f"{policy:15} rounding alone {rounding:.4f}; largest error before position 32, 128, 512:", end=" ")
    print(*(f"{errors[:n].max():.4f}" for n in (32, 128, 512)), f"; equal neighbours: {same}")
    assert (same > 100) == (policy == "mixed_bfloat16")
    assert (errors[:128].max() > 0.2) == (policy == "mixed_bfloat16")
PYTHON
