#!/usr/bin/env bash
# NLTK's METEOR matches repeated words from the end, and so punishes word order that is right.
#
# An expert expects: METEOR pairs equal words with as few crossings as possible, as its paper says; a translation that is the
# reference's beginning, word by word, is one run ("chunk").
# What happens: NLTK pairs words from the end of the sentence backwards, whatever crosses. "the cat" against "the cat sat on
# the mat" pairs its "the" with the "the" of "the mat": two runs, so the highest penalty: 0.18, not 0.34. And the penalty
# of one run stays for a perfect translation: a sentence of one word scores 0.5, one of two words 0.94.
# Why it matters: many scripts, such as Hugging Face's `evaluate`, take METEOR from NLTK. Languages with articles and short
# captions (Multi30k) lose most, and the scores cannot be set beside those of METEOR's own program, which papers cite
# and kzoo runs.
#
# Version: nltk 3.10.4. Source: nltk/translate/meteor_score.py, page nltk.org/api/nltk.translate.meteor_score.html;
# Banerjee and Lavie 2005, aclanthology.org/W05-0909.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet nltk==3.10.4

"$folder/venv/bin/python" - <<'PYTHON'
import nltk
from nltk.translate.meteor_score import exact_match, single_meteor_score

print("nltk", nltk.__version__)


class NoSynonyms:
    """Stands for WordNet, so that no data is needed: words match by form and stem."""

    @staticmethod
    def synsets(word):
        return []


def by_paper(matches, chunks, translation, reference):
    """METEOR with NLTK's parameters (alpha 0.9, beta 3, gamma 0.5) for a given number of runs."""
    precision, recall = matches / translation, matches / reference
    return precision * recall / (0.9 * precision + 0.1 * recall) * (1 - 0.5 * (chunks / matches) ** 3)


for reference, translation, matches in (
    ("the cat sat on the mat", "the cat", 2),
    ("a man and a dog run on a beach", "a man and a dog", 5),
    ("the boy in the red shirt holds the ball", "the boy in the red shirt", 6),
):
    words, truth = translation.split(), reference.split()
    score = single_meteor_score(truth, words, wordnet=NoSynonyms)
    best = by_paper(matches, 1, len(words), len(truth))
    print(f"{translation!r} of {reference!r}: {score:.3f}, with one run {best:.3f}")
    print("   pairs (translation, reference):", exact_match(words, truth)[0])
    assert score < 0.95 * best
one_word = single_meteor_score(["Hunde"], ["Hunde"], wordnet=NoSynonyms)
print("perfect translation of one word:", one_word)
assert one_word == 0.5
PYTHON
