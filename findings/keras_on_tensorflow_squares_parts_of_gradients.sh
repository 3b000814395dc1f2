#!/usr/bin/env bash
# On TensorFlow, Keras's Adam moves the embedding of a frequent word much faster than on JAX and torch.
#
# An expert expects: a word's gradient is the sum over its places in the batch, and Adam squares the sum. So the first
# step moves every weight that has a gradient by the learning rate, and the three backends give the same weights.
# What happens: TensorFlow's gradient of an embedding has a part for each place (`tf.IndexedSlices`). Keras squares the
# parts and adds up the squares: n equal parts g give a second moment of n·g², not (n·g)². A word that is in 100 places
# moves by 10 learning rates instead of one. AdamW, Nadam, Adafactor, RMSprop and Adagrad do the same. And
# `global_clipnorm` measures the parts: here it lets ten times as much pass, with any optimizer.
# Why it matters: commas and articles are in hundreds of places of a batch, and embeddings are a third of a small
# translator. The same recipe trains otherwise on TensorFlow than on JAX and torch, and clipping protects less. Keras 2
# added up the parts first. Use a subclass whose `apply` calls `tf.convert_to_tensor` on each gradient.
#
# Versions: keras 3.15.1, tensorflow 2.21.0, jax 0.10.2. Source: keras/src/optimizers/adam.py, `update_step`;
# base_optimizer.py, `global_norm`; backend/tensorflow/sparse.py. For Keras 2:
# tensorflow/python/keras/optimizer_v2/optimizer_v2.py, `_deduplicate_indexed_slices`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0 jax==0.10.2 jaxlib==0.10.2

cat > "$folder/step.py" <<'PYTHON'
import keras
import numpy as np

RATE, PLACES = 0.01, 100
WORDS = np.array([[1] * PLACES + [2]])  # word 1 is in 100 places, word 2 in one
print("keras", keras.__version__, "on", keras.backend.backend())
for name in ("Adam", "RMSprop", "SGD"):
    inputs = keras.Input((PLACES + 1,), dtype="int32")
    embedding = keras.layers.Embedding(3, 1, embeddings_initializer="ones")
    model = keras.Model(inputs, embedding(inputs))
    optimizer = getattr(keras.optimizers, name)(RATE, global_clipnorm=1.0 if name == "SGD" else None)
    model.compile(optimizer, lambda _, vectors: keras.ops.sum(vectors, axis=(1, 2)))  # a gradient of 1 for each place
    model.fit(WORDS, np.zeros(1), verbose=0)
    moved = (1 - keras.ops.convert_to_numpy(embedding.embeddings)[:, 0]) / RATE
    print(f"    {name:8} moves the frequent word by {moved[1]:6.3f} learning rates, the rare one by {moved[2]:.3f}")
    parts = keras.backend.backend() == "tensorflow"
    if name == "Adam":
        assert np.allclose(moved[1:], [10 if parts else 1, 1], atol=0.01)
    if name == "SGD":  # the norm of the gradient (100, 1) is 100; of 101 ones, 10
        assert abs(np.hypot(*moved[1:]) - (9.95 if parts else 1)) < 0.01
PYTHON
for backend in jax tensorflow; do
    KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" "$folder/step.py" 2> "$folder/log" ||
        { cat "$folder/log"; exit 1; }
done
