#!/usr/bin/env bash
# On JAX, a Keras model whose `fit` fails in its first step has lost its weights.
#
# An expert expects: if the data of a further `fit` cannot be read (a file is gone, a shape is wrong, Ctrl-C during
# compilation), the error is raised and the model is as it was before, as on TensorFlow and torch.
# What happens: Keras takes the arrays out of the model's variables before the first step, to give their memory to JAX,
# and puts arrays back only if a step has ended. If none has, the variables hold nothing: predicting, saving and
# `get_weights` all end in "TypeError: 'NoneType' object is not callable".
# Why it matters: in a notebook, hours of training are lost by a typo in the next call of `fit`. Save before each, or keep
# the arrays (`[variable.value for variable in model.variables]`) and assign them again after an error.
#
# Versions: keras 3.15.1, jax 0.10.2. Source: keras/src/backend/jax/trainer.py, `fit` and `_purge_model_variables`.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 jax==0.10.2 numpy==2.4.6

KERAS_BACKEND=jax "$folder/venv/bin/python" - <<'PYTHON'
from importlib.metadata import version

import keras
import numpy as np

print("keras", keras.__version__, "jax", version("jax"))


class GoneFile(keras.utils.PyDataset):
    def __len__(self):
        return 1

    def __getitem__(self, index):
        raise OSError("the file is gone")


x, y = np.ones((4, 2), "float32"), np.ones((4, 1), "float32")
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(x, y, verbose=0)
print("trained:", model.get_weights())
try:
    model.fit(GoneFile(), verbose=0)
except OSError as error:
    print("OSError:", error)
for call in (model.get_weights, lambda: model.predict(x, verbose=0)):
    try:
        call()
    except TypeError as error:
        print("TypeError:", error)
    else:
        raise SystemExit("the weights are still there: the behaviour has changed")
PYTHON
