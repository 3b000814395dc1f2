#!/usr/bin/env bash
# Between two epochs, Keras's `fit` on TensorFlow may wait for as long as half of an epoch, while all cores are idle.
#
# An expert expects: after an epoch's last batch, the next epoch begins at once. `PyDataset` is Keras's own way to give
# batches, and one worker, its default, the simplest.
# What happens: Keras reads them through `tf.data` with autotuning. A thread tunes and sleeps in turns, twice as long
# each time, from 10 ms to a minute. When an epoch's iterator is deleted, `tf.data` wakes the thread and waits for its
# end, but says only afterwards that it is to end: if the thread has looked before, it sleeps again for the rest of its
# time. So many epochs last until the next sum of sleeps: 2.6, 5.1, 10.2, 20.5, 41 s and so on; one of 26 s takes 41. It
# also happens when a callback ends `fit`, and at Ctrl-C. Nothing is printed; speed per step looks as if it varied.
# Why it matters: training on two cores lost a sixth of ten minutes. `options.autotune.enabled = False` on the dataset
# removes the wait. Keras sets it if a PyDataset has several workers.
#
# Versions: keras 3.15.1, tensorflow 2.21.0. Source: keras/src/trainers/data_adapters/py_dataset_adapter.py,
# `get_tf_dataset`; tensorflow/core/framework/model.cc, `OptimizeLoop`; tensorflow/core/framework/cancellation.cc,
# `StartCancelWithStatus`, which runs callbacks before it sets `is_cancelled_`.
# Output seen on two cores of an AMD EPYC:
#     keras 3.15.1 tensorflow 2.21.0
#     seconds between epochs of about 3 s, as they come: 0.0 0.1 1.5 0.0 1.6 0.1 0.0 0.0 0.0 1.8 1.7
#     seconds between epochs of about 3 s, without autotuning: 0.0 0.0 0.1 0.1 0.0 0.0 0.0 0.0 0.1 0.1 0.0
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0

cat > "$folder/wait.py" <<'PYTHON'
import os
import time
from importlib.metadata import version

os.environ |= {"KERAS_BACKEND": "tensorflow", "TF_CPP_MIN_LOG_LEVEL": "3", "CUDA_VISIBLE_DEVICES": ""}
import keras
import numpy as np
import tensorflow as tf

print("keras", version("keras"), "tensorflow", version("tensorflow"))
EPOCHS, COUNT = 12, 140
BATCH = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


class Batches(keras.utils.PyDataset):
    """Each batch takes 20 ms to make, an epoch about 3 s."""

    def __len__(self):
        return COUNT

    def __getitem__(self, index):
        time.sleep(0.02)
        return BATCH


class Clock(keras.callbacks.Callback):
    """Takes the time from each epoch's last batch to the next epoch's first."""

    def __init__(self):
        super().__init__()
        self.waits = []

    def on_train_batch_begin(self, batch, logs=None):
        if not batch and hasattr(self, "trained"):
            self.waits.append(time.perf_counter() - self.trained)

    def on_train_batch_end(self, batch, logs=None):
        self.trained = time.perf_counter()


def waits_between(epochs, how):
    clock = Clock()
    model.fit(epochs, epochs=EPOCHS, shuffle=False, verbose=0, callbacks=[clock])
    print(f"seconds between epochs of about 3 s, {how}:", *(f"{wait:.1f}" for wait in clock.waits), flush=True)
    return clock.waits


model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(*BATCH, verbose=0)  # compiles
assert sum(wait > 1 for wait in waits_between(Batches(), "as they come")) >= 2

options = tf.data.Options()
options.autotune.enabled = False
untuned = tf.data.Dataset.from_generator(
    lambda: map(Batches().__getitem__, range(COUNT)),
    output_signature=(tf.TensorSpec((8, 4)), tf.TensorSpec((8, 1))),
)
untuned = untuned.prefetch(tf.data.AUTOTUNE).apply(tf.data.experimental.assert_cardinality(COUNT))
assert max(waits_between(untuned.with_options(options), "without autotuning")) < 0.5
PYTHON
"$folder/venv/bin/python" "$folder/wait.py"
