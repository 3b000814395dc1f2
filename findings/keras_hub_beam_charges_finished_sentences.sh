#!/usr/bin/env bash
# KerasHub's beam search goes on with finished sentences, and so returns a less probable one.
#
# An expert expects: a hypothesis that has written the end token is finished. Its score stays, and the best finished one
# wins, as in transformers, CTranslate2, JoeyNMT and Marian.
# What happens: `BeamSampler` has no notion of finished. While any hypothesis of any sentence of the batch is open, a
# finished one goes on: it is charged for the token that the model puts after the end, which nobody has trained, and soon
# drops out of the beam. In this example the empty sentence has probability 0.6 and the other one 0.4, and the other
# wins, as what follows the end costs a factor of 4. With the same model, but sure of what follows the end, the right one
# wins. A sentence's result so also depends on the sentences beside it, which keep the loop running.
# Why it matters: who compares a translator's beam search with KerasHub's, or trains one with KerasHub's layers and
# `compile(sampler="beam")`, gets longer, less probable texts and scores that are no probabilities of the texts.
#
# Versions: keras-hub 0.32.0, keras 3.15.1, tensorflow 2.21.0.
# Source: keras_hub/src/samplers/beam_sampler.py; page keras.io/keras_hub/api/samplers/beam_sampler.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras-hub==0.32.0 keras==3.15.1 tensorflow==2.21.0 tensorflow-text==2.21.1

KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
import keras
import keras_hub
import numpy as np
from keras import ops

print("keras-hub", keras_hub.__version__, "keras", keras.__version__)
PAD, START, WORD, END = range(4)
PROMPT = np.array([[START, PAD, PAD, PAD, PAD]], "int32")


def search(after_end):
    """Return the hypotheses, best first, and their probabilities; `after_end`: what the model puts after the end."""
    table = np.full((4, 4), 1e-9, "float32")
    table[START, [END, WORD]] = 0.6, 0.4
    table[WORD, END] = 1
    table[END] = after_end
    logits = ops.log(table)

    def next_token(prompt, cache, index):
        return ops.take(logits, prompt[:, index - 1], axis=0), None, cache

    sampler = keras_hub.samplers.BeamSampler(num_beams=2, return_all_beams=True)
    beams, scores = sampler(next_token, PROMPT, index=1, mask=PROMPT == START, stop_token_ids=(END,))
    return ops.convert_to_numpy(beams)[0].tolist(), np.exp(ops.convert_to_numpy(scores)[0])


beams, scores = search([0.25, 0.25, 0.25, 0.25])
print("best:", beams[0], "probability", scores[0].round(3), " second:", beams[1], scores[1].round(3))
assert beams[0] == [START, WORD, END, PAD, PAD] and abs(scores[0] - 0.4) < 1e-3
assert abs(scores[1] - 0.15) < 1e-3  # the finished sentence's 0.6, and a quarter of it for what follows
beams, scores = search([1e-9, 1e-9, 1e-9, 1])
print("if the end follows the end surely, best:", beams[0], "probability", scores[0].round(3))
assert beams[0][:2] == [START, END] and abs(scores[0] - 0.6) < 1e-3
PYTHON
