#!/usr/bin/env bash
# On TensorFlow, Keras's TimeDistributed reads only as many words of a sentence as the batch has sentences.
#
# An expert expects: `TimeDistributed(Dense(tags))` gives as many outputs as there are words, for sentences of any length.
# What happens: the first batch is right. At the second length, TensorFlow traces `predict` anew with an unknown length,
# and the layer then loops over as many words as the batch has sentences. Two sentences of 7 words give 2 tags each, one
# sentence gives one tag. With more sentences than words there is an error. Called directly (`model(x)`), the model is
# right, as it is on JAX and torch. An exported SavedModel is wrong from the first call, whose length is unknown too.
# With batches of one sentence, `fit` trains without an error, and compares the first word's output with all tags.
# Why it matters: a tagger over a recurrent layer is the textbook use of this layer, and batches of sentences differ in
# length. A `zip` of words and tags hides that tags are missing. Leave TimeDistributed out: a Dense layer alone does the
# same on `(B, T, D)`. Or pad all batches to one length, and give this length to `keras.Input`.
#
# Versions: keras 3.15.1, tensorflow 2.21.0, jax 0.10.2. Source: keras/src/layers/rnn/time_distributed.py, `call`:
# `ops.arange(input_shape[0])`, where `input_shape` is the shape before sentences and words change places.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0 jax==0.10.2 jaxlib==0.10.2

cat > "$folder/tag.py" <<'PYTHON'
import keras
import numpy as np
from keras import layers, ops

backend, TAGS = keras.backend.backend(), 3
print("keras", keras.__version__, "on", backend)
keras.utils.set_random_seed(0)
words = keras.Input((None,), dtype="int32")
states = layers.Bidirectional(layers.LSTM(8, return_sequences=True))(layers.Embedding(20, 8)(words))
tags = layers.TimeDistributed(layers.Dense(TAGS, activation="softmax"))(states)
model = keras.Model(words, tags)
random = np.random.default_rng(0)


def show(way, function, sentences, length):
    batch = random.integers(1, 20, (sentences, length), "int32")
    found, expected = function(batch), ops.convert_to_numpy(model(batch))
    print(f"    {way}: {sentences} × {length} words, tags for {found.shape[0]} × {found.shape[1]}")
    assert expected.shape == (sentences, length, TAGS)
    np.testing.assert_allclose(found, expected[:, : found.shape[1]], atol=1e-5)
    return found.shape[1]


kept = [show("predict", model.predict_on_batch, *shape) for shape in ((2, 5), (2, 7), (3, 9), (1, 4))]
assert kept == ([5, 2, 3, 1] if backend == "tensorflow" else [5, 7, 9, 4])
if backend == "tensorflow":
    model.export("exported", verbose=False)
    layer = layers.TFSMLayer("exported", call_endpoint="serve")
    assert show("SavedModel", lambda batch: layer(batch).numpy(), 1, 4) == 1

model.compile("sgd", "mse")
for length in (5, 6):
    batch, gold = np.full((1, length), 1, "int32"), np.eye(TAGS)[np.zeros((1, length), int)]
    gold[:, 1:] = np.eye(TAGS)[2]  # the first word has tag 0, all others have tag 2
    before = [ops.convert_to_numpy(weight) for weight in model.weights]
    loss = model.train_on_batch(batch, gold)
    for weight, value in zip(model.weights, before, strict=True):
        weight.assign(value)
    expected = np.mean((gold - ops.convert_to_numpy(model(batch))) ** 2)
    first = np.mean((gold - ops.convert_to_numpy(model(batch))[:, :1]) ** 2)
    print(f"    loss of 1 × {length} words: {loss:.5f}; of all outputs {expected:.5f}, of the first output {first:.5f}")
    assert np.isclose(loss, first if backend == "tensorflow" and length == 6 else expected, atol=1e-6)
    assert not np.isclose(first, expected, atol=1e-5)
PYTHON
cd "$folder"
for backend in jax tensorflow; do
    KERAS_BACKEND=$backend TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" -W ignore "$folder/tag.py" 2> "$folder/log" ||
        { cat "$folder/log"; exit 1; }
done
