#!/usr/bin/env bash
# Keras's `fit` on TensorFlow waits at the end of each epoch, up to half of the time, while both cores are idle.
#
# An expert expects: after an epoch's last batch, the next epoch begins at once. `PyDataset` is Keras's own way to give
# batches, and one worker, its default, the simplest.
# What happens: Keras reads them through `tf.data` with autotuning. Its thread tunes, sleeps, and tunes again, and sleeps
# twice as long each time: 10 ms, 20 ms, … up to a minute. At the end of an epoch, the iterator is deleted, which waits
# until that thread wakes. So an epoch of T seconds lasts until the next sum of sleeps, 1.3, 2.5, 5.1, 10.2, 20.5, 41 s
# and so on: one of 11 s takes 20. `fit` also waits when a callback ends it, or Ctrl-C. Nothing is printed.
# Why it matters: training on two cores lost up to a third of its time. `options.autotune.enabled = False` on the
# dataset removes the wait; Keras sets it itself if a PyDataset has several workers.
#
# Versions: keras 3.15.1, tensorflow 2.21.0. Source: keras/src/trainers/data_adapters/py_dataset_adapter.py,
# `get_tf_dataset`; tensorflow/core/framework/model.cc, `OptimizeLoop`; tensorflow/core/data/root_dataset.cc.
# Output seen on two cores of an AMD EPYC:
#     keras 3.15.1 tensorflow 2.21.0
SEEN
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
ROWS, TARGETS = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")


class Batches(keras.utils.PyDataset):
    """Each batch takes 20 ms to make."""

    def __init__(self, seconds):
        super().__init__()
        self.count = round(seconds / 0.02)

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        time.sleep(0.02)
        return ROWS, TARGETS


class Clock(keras.callbacks.Callback):
    """Sums up the time from each epoch's last batch to its end."""

    def on_epoch_begin(self, epoch, logs=None):
        self.began = time.perf_counter()

    def on_train_batch_end(self, batch, logs=None):
        self.trained = time.perf_counter()

    def on_epoch_end(self, epoch, logs=None):
        self.worked, self.waited = self.trained - self.began, time.perf_counter() - self.trained


def wait_after(batches):
    clock = Clock()
    model.fit(batches, verbose=0, callbacks=[clock])
    print(f"{type(batches).__name__}: {clock.worked:.1f} s of batches, then a wait of {clock.waited:.1f} s", flush=True)
    return clock.waited


model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ROWS, TARGETS, verbose=0)  # compiles
waits = [wait_after(Batches(seconds)) for seconds in (3, 6, 11)]

options = tf.data.Options()
options.autotune.enabled = False
untuned = tf.data.Dataset.from_generator(
    lambda: (batch for batch in map(Batches(3).__getitem__, range(150))),
    output_signature=(tf.TensorSpec((8, 4)), tf.TensorSpec((8, 1))),
)
untuned = untuned.prefetch(tf.data.AUTOTUNE).apply(tf.data.experimental.assert_cardinality(150))
assert wait_after(untuned.with_options(options)) < 0.5
assert sum(waits) > 5, waits
PYTHON
"$folder/venv/bin/python" "$folder/wait.py"
