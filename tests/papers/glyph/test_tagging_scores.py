"""F1 over (segment, tag) against counting by hand and scikit-learn's formula over all possible spans."""

import itertools

import pytest
from message_of import message_of
from sklearn.metrics import precision_recall_fscore_support

from training.glyph.tagging import score_tagging


def sentence(random, length):
    """Cut a sentence anywhere and tag its pieces."""
    cuts = [0, *sorted(set(random.integers(1, length, 3).tolist())), length]
    return [("字" * (b - a), str(random.choice(["N", "V"]))) for a, b in itertools.pairwise(cuts)]


def test_equals_brute_force_over_all_spans(random):
    predicted = [sentence(random, 6) for _ in range(30)]
    true = [sentence(random, 6) for _ in range(30)]

    def has(words, start, end, tag):
        place = 0
        for word, name in words:
            if (place, place + len(word), name) == (start, end, tag):
                return 1
            place += len(word)
        return 0

    spans = [(a, b, tag) for a in range(6) for b in range(a + 1, 7) for tag in "NV"]
    one = [has(words, *span) for words in predicted for span in spans]
    other = [has(words, *span) for words in true for span in spans]
    expected = precision_recall_fscore_support(other, one, average="binary")[:3]
    scores = score_tagging(predicted, true)
    assert (scores.precision, scores.recall, scores.f1) == pytest.approx([100 * value for value in expected])
    assert scores.sentences == 30


def test_best_and_worst():
    words = [[("学生", "N"), ("来", "V")], []]
    assert score_tagging(words, words).f1 == 100
    assert score_tagging([[("学", "N"), ("生来", "N")], []], words).f1 == 0


def test_what_does_not_fit_is_named():
    assert "1 tagged" in message_of(score_tagging, [[]], [[], []])
    assert "sentence 2" in message_of(score_tagging, [[], [("学", "N")]], [[], [("生", "N")]])
