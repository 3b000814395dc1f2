#!/usr/bin/env bash
# SentencePiece's seed fixes samples within a process, but not between two processes.
#
# An expert expects: after `set_random_generator_seed(7)`, sampled segmentations (subword regularization, BPE-dropout) are
# the same in each run of a program, as with NumPy's or Python's seeds.
# What happens: in one process, a new thread that begins with the same seed draws the same samples. Another process that
# sets the same seed, before anything else, draws other ones. So it is for byte-pair encodings and for unigram models.
# Why it matters: a training run that samples subwords cannot be repeated, and after a stop goes on with other text than
# it would have had. A test of equal samples passes, because it runs in one process. Draw the merges to leave out with a
# generator of your own, or keep the samples on disk.
#
# Version: sentencepiece 0.2.3, the wheel for Linux on x86-64. Source: github.com/google/sentencepiece, issue 540, whose
# answer names `set_random_generator_seed` as the way to repeat samples.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet sentencepiece==0.2.3
cd "$folder"

venv/bin/python - <<'PYTHON'
from importlib.metadata import version

import sentencepiece

print("sentencepiece", version("sentencepiece"))
texts = ["A man is walking with a goat in the field.", "Two red boats are lying in the square."] * 20
for kind in ("bpe", "unigram"):
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(texts), model_prefix=kind, vocab_size=50, model_type=kind, hard_vocab_limit=False,
        minloglevel=2, num_threads=1,
    )
PYTHON

cat > draw.py <<'PYTHON'
import sys
import threading

import sentencepiece

drawn = []


def draw():
    options = {"enable_sampling": True, "alpha": 0.2, "nbest_size": -1, "out_type": str}
    drawn.append([processor.encode("A man is walking in the square.", **options) for _ in range(5)])


sentencepiece.set_random_generator_seed(7)
processor = sentencepiece.SentencePieceProcessor(model_file=sys.argv[1])
for _ in range(2):
    sentencepiece.set_random_generator_seed(7)
    thread = threading.Thread(target=draw)
    thread.start()
    thread.join()
assert drawn[0] == drawn[1], "two threads of one process differ"
print(" ".join(drawn[0][0]))
print(drawn[0], file=sys.stderr)
PYTHON

for kind in bpe unigram; do
    for process in 1 2 3; do
        venv/bin/python draw.py "$kind.model" 2> "$kind.$process" | sed "s/^/$kind, process $process: /"
    done
    if cmp -s "$kind.1" "$kind.2" && cmp -s "$kind.2" "$kind.3"; then
        echo "$kind: all processes drew the same: the behaviour has changed"
        exit 1
    fi
done
