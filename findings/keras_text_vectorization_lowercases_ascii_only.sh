#!/usr/bin/env bash
# Keras's TextVectorization lowercases ASCII letters only, and splits and strips at ASCII only.
#
# An expert expects: its default standardization, "lower_and_strip_punctuation", is the Unicode one of Python's `lower`:
# Über and über, МИР and мир are one word each, and « » ¿ 。 are punctuation; words are split at every kind of space.
# What happens: it calls TensorFlow's `lower`, which leaves all but A–Z as it is unless it is told an encoding. So ÄRGER
# becomes Ärger, and the layer learns Über and über as two words. « » ¿ 。 stay glued to their words, and a no-break or an
# ideographic space does not split. Words of English come out right, which is what examples use.
# Why it matters: it is the tokenizer of Keras's translation tutorials, and the first one that many try. In Russian,
# Greek or Czech every word at the start of a sentence is another word or unknown; translations of a name in capitals
# fail; vocabularies of German and French hold words twice. Lowercase in Python before, or use subwords.
#
# Versions: keras 3.15.1, tensorflow 2.21.0. Source: keras/src/layers/preprocessing/text_vectorization.py;
# pages keras.io/api/layers/preprocessing_layers/text/text_vectorization, tensorflow.org/api_docs/python/tf/strings/lower.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet keras==3.15.1 tensorflow==2.21.0

KERAS_BACKEND=tensorflow TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON' 2> "$folder/log" || { cat "$folder/log"; exit 1; }
import keras
import tensorflow

print("keras", keras.__version__, "tensorflow", tensorflow.__version__)


def words(text):
    layer = keras.layers.TextVectorization()
    layer.adapt([text])
    return {str(word) for word in layer.get_vocabulary()[2:]}


for text, expected in {
    "Over, over OVER!": {"over"},
    "Über über ÜBER": {"Über", "über"},
    "Ärger ÄRGER": {"Ärger"},
    "МИР мир Мир": {"МИР", "мир", "Мир"},
    "Škoda škoda": {"Škoda", "škoda"},
    "¿Qué? «qué» qué": {"¿qué", "«qué»", "qué"},
    "10\u00a0km dort\u3000hier": {"10\u00a0km", "dort\u3000hier"},
}.items():
    found = words(text)
    print(f"{text!r} -> {sorted(found)}")
    assert found == expected
PYTHON
