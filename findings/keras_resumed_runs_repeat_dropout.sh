#!/usr/bin/env bash
# A run with a fixed seed that Keras resumes drops the units of its first epochs again: no file has the seeds' counters.
#
# An expert expects: `BackupAndRestore` "recovers training from an interruption": a run that stops after two epochs and
# starts again gives the losses of one that never stopped, at least if batches are not shuffled.
# What happens: it does without dropout. With dropout, weights and optimizer come back, but the counter of each layer's
# `SeedGenerator` starts at 0: after `keras.utils.set_random_seed`, epoch 3 gets the masks of epoch 1, epoch 4 those of
# epoch 2. No weights file has the counter, so `save_weights`, `save` and `ModelCheckpoint` lose it too. Without a fixed
# seed, each process draws new ones.
# Why it matters: translators train for days on machines that stop often. With a fixed seed, each restart repeats the same
# masks, so the regularization is less random than it seems; with or without, no resumed run gives the digits of a whole one.
# kzoo's own training keeps the seeds beside its checkpoints; a plain `fit` of its models does not.
#
# Versions: keras 3.15.1 on JAX 0.10.2; the same on TensorFlow 2.21.0.
# Source: keras/src/random/seed_generator.py (`SeedGenerator` is no `KerasSaveable`) and saving/saving_lib.py, `_save_state`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2 jaxlib==0.10.2

FOLDER="$folder" KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
import os

import jax
import keras
import numpy as np

print("keras", keras.__version__, "jax", jax.__version__)
EPOCHS, STOPPED = 4, 2
random = np.random.default_rng(1)
INPUTS = random.standard_normal((64, 8)).astype("float32")
TARGETS = INPUTS.sum(axis=1, keepdims=True)


class Counter(keras.callbacks.Callback):
    """Notes each epoch's number and the dropout's seed before it; stops before epoch `end`."""

    def __init__(self, end=None):
        super().__init__()
        self.end, self.seeds = end, {}

    def on_epoch_begin(self, epoch, logs=None):
        if epoch == self.end:
            raise KeyboardInterrupt
        self.seeds[epoch] = [np.array(v).tolist() for v in self.model.get_layer("dropout").variables]


def fit(rate, *callbacks):
    """Return the losses of a new model's training."""
    keras.utils.set_random_seed(1)
    layers = [keras.layers.Dense(32), keras.layers.Dropout(rate, name="dropout"), keras.layers.Dense(1)]
    model = keras.Sequential([keras.Input((8,)), *layers])
    model.compile("adam", "mse")
    settings = {"epochs": EPOCHS, "batch_size": 64, "shuffle": False, "verbose": 0}
    return model.fit(INPUTS, TARGETS, callbacks=list(callbacks), **settings).history["loss"]


for rate in (0.0, 0.5):
    backup = keras.callbacks.BackupAndRestore(f"{os.environ['FOLDER']}/backup{rate}")
    whole, begun, resumed = Counter(), Counter(STOPPED), Counter()
    expected = fit(rate, whole)
    try:
        fit(rate, backup, begun)
    except KeyboardInterrupt:
        pass
    found = fit(rate, backup, resumed)
    print(f"dropout {rate}: losses of epochs 3 and 4 {expected[STOPPED:]}, resumed {found}")
    if rate:
        print(f"seed before epoch 1 {whole.seeds[0]}, epoch 3 {whole.seeds[2]}, epoch 3 resumed {resumed.seeds[2]}")
        assert resumed.seeds[2] == whole.seeds[0] != whole.seeds[2]
        assert not np.allclose(found, expected[STOPPED:], rtol=0.01)
    else:
        assert np.allclose(found, expected[STOPPED:], rtol=1e-5)
PYTHON
