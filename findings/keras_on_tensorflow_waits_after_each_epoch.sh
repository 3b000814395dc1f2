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
#     keras 3.15.1 tensorflow 2.21.0
#     seconds to delete an iterator: 1.0 0.0 1.0 1.0 1.0 1.0 0.0 1.0 0.0 1.0 1.0 1.0 1.0 1.0 1.0 1.0
#     the same without autotuning: 0.0 0.0 0.0 0.0
# Between the epochs of a model of one layer it is rarer, about one in twenty.
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
