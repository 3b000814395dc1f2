#!/usr/bin/env bash
# A `tf.data` iterator, such as Keras's `fit` on TensorFlow uses, may take up to a minute to be deleted, in silence.
#
# An expert expects: an iterator that is no longer needed is gone at once; after an epoch's last batch the next begins.
# What happens: Keras reads a `PyDataset` of one worker through `tf.data` with autotuning, whose thread tunes and sleeps
# in turns, twice as long each time, from 10 ms to a minute. Deleting the iterator often waits until the thread wakes:
# until the next sum of sleeps, 1.3, 2.6, 5.1, 10.2, 20.5, 41 s and so on, while all cores are idle. The likely cause:
# the thread is woken before it can see that it is cancelled, and sleeps on.
# Why it matters: a run of translation waited a minute at its end, and three of 16 epochs took 39 to 43 s instead of 28.
# `options.autotune.enabled = False` on the dataset removes it. Keras sets it if a PyDataset has several workers.
#
# Versions: keras 3.15.1, tensorflow 2.21.0. Source: keras/src/trainers/data_adapters/py_dataset_adapter.py,
# `get_tf_dataset`; tensorflow/core/data/root_dataset.cc; tensorflow/core/framework/model.cc, `OptimizeLoop`.
# Output seen on two cores of an AMD EPYC:
#     keras 3.15.1 tensorflow 2.21.0
#     seconds to delete an iterator: 1.0 0.0 1.0 1.0 1.0 1.0 0.0 1.0 0.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0
#     the same without autotuning: 0.0 0.0 0.0 0.0
# Between the epochs of `fit` with a model of one layer it is rare: 2 of 39 on a quiet machine.
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
import numpy as np
import tensorflow as tf

print("keras", version("keras"), "tensorflow", version("tensorflow"))


def batches():
    while True:
        time.sleep(0.02)
        yield np.zeros((4,), "float32")


def waits(tuned, count):
    """Return the seconds that the deletion of iterators takes, after 1.5 s of batches; the sums of sleeps: 1.3, 2.6 s."""
    found = []
    for _ in range(count):
        # As Keras's `get_tf_dataset` has it.
        dataset = tf.data.Dataset.from_generator(batches, output_signature=tf.TensorSpec((4,), tf.float32))
        options = tf.data.Options()
        options.autotune.enabled = tuned
        iterator, began = iter(dataset.prefetch(tf.data.AUTOTUNE).with_options(options)), time.perf_counter()
        while time.perf_counter() - began < 1.5:
            next(iterator)
        ended = time.perf_counter()
        del iterator
        found.append(time.perf_counter() - ended)
    return found


tuned, untuned = waits(True, 16), waits(False, 4)
print("seconds to delete an iterator:", *(f"{seconds:.1f}" for seconds in tuned))
print("the same without autotuning:", *(f"{seconds:.1f}" for seconds in untuned))
assert sum(seconds > 0.5 for seconds in tuned) >= 3 and max(untuned) < 0.5
PYTHON
"$folder/venv/bin/python" "$folder/wait.py"
