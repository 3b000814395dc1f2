#!/usr/bin/env bash
# KerasHub's BLEU "replicates SacreBLEU", but numbers at the end, no-break spaces and further references differ.
#
# An expert expects: `keras_hub.metrics.Bleu` gives sacreBLEU's score of the same texts, divided by 100, as its page
# says.
# What happens: a full stop after a digit at the end of a text is not split off ("1932." is one token), a no-break
# space, which French has before every ":" and "?", does not separate words, and with several references the shortest
# one's length counts instead of the closest one's, so translations that are too short are not punished.
# Why it matters: it is Keras's metric for translations. On sentences without these it agrees with sacreBLEU, so a test
# shows nothing; of French, of texts with years and amounts, or with several references, its score cannot be set beside
# a paper's. A SentencePiece model writes no no-break space, so it loses each French ":".
#
# Versions: keras-hub 0.32.0, sacrebleu 2.6.0, tensorflow 2.21.0. Source: keras_hub/src/metrics/bleu.py,
# `REGEX_PATTERNS` and `_corpus_bleu`; sacrebleu/tokenizers/tokenizer_13a.py; page keras.io/keras_hub/api/metrics/bleu.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras-hub==0.32.0 keras==3.15.1 tensorflow==2.21.0 tensorflow-text==2.21.1 \
    sacrebleu==2.6.0

KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
import keras_hub
import sacrebleu

print("keras-hub", keras_hub.__version__, "sacrebleu", sacrebleu.__version__)
TEXTS = {  # what is compared: the translation, and its references
    "nothing special": ("The old house was sold in May.", ["The old house was sold in June."]),
    "a number at the end": ("The old house was built in 1923.", ["The old house was built in 1932."]),
    "a no-break space": ("Elle a dit : le train part à midi.", ["Elle a dit\u00a0: le train part à midi."]),
    "two references": ("two men are sitting on a bench", ["two men are sitting on a bench in the park", "men sit"]),
}
scores = {}
for name, (translation, references) in TEXTS.items():
    metric = keras_hub.metrics.Bleu()
    metric.update_state([references], [translation])
    theirs = sacrebleu.corpus_bleu([translation], [[reference] for reference in references]).score
    scores[name] = 100 * float(metric.result()), theirs
    print(f"{name:20} keras-hub {scores[name][0]:6.2f}   sacrebleu {theirs:6.2f}")
equal = [abs(ours - theirs) < 0.01 for ours, theirs in scores.values()]
assert equal == [True, False, False, False]
PYTHON
