"""Frequency buckets against pandas-like counting by hand, and their scores against sacreBLEU on each."""

import numpy as np
import pytest
from message_of import message_of
from sacrebleu.metrics import BLEU

from training.glyph.character_frequency import frequency_buckets, score_by_frequency


def test_buckets_are_the_outer_quartiles_of_mean_frequency(random):
    letters = list("abcdefghij")
    training = ["".join(random.choice(letters, 20, p=np.arange(1, 11) / 55)) for _ in range(30)]
    sentences = ["".join(random.choice(letters, 6)) + " " for _ in range(41)]
    means = np.array([np.mean(["".join(training).count(c) for c in s.strip()]) for s in sentences])
    buckets = np.array(frequency_buckets(sentences, training))
    assert [(buckets == name).sum() for name in ("low", "mid", "high")] == [10, 21, 10]
    assert means[buckets == "low"].max() <= means[buckets == "mid"].min()
    assert means[buckets == "mid"].max() <= means[buckets == "high"].min()


def test_unseen_characters_and_empty_sentences_are_rarest():
    assert frequency_buckets(["aa", "", "b", "a"], ["aab"])[1] == "low"
    assert frequency_buckets(["aa", "x", "b", "a"], ["aab"])[1] == "low"
    assert frequency_buckets([], ["a"]) == []


def test_spaces_do_not_count():
    """They are more frequent than any letter."""
    assert frequency_buckets(["a", "b", "c", "d    d"], ["a   a", "a a b b b c c   d"])[3] == "low"


def test_scores_are_those_of_each_bucket():
    references = [f"sentence number {word} is quite short" for word in ("one", "two", "three", "four")]
    translations = [references[0], references[1], "something else", references[3].replace("quite", "very")]
    buckets = ["high", "mid", "low", "mid"]
    scores = {s.split: s for s in score_by_frequency(translations, references, buckets, "en")}
    assert list(scores) == ["low", "mid", "high"]
    assert [scores[name].sentences for name in scores] == [1, 2, 1]
    expected = BLEU().corpus_score([translations[1], translations[3]], [[references[1], references[3]]]).score
    assert scores["mid"].bleu == pytest.approx(expected)
    assert scores["high"].bleu == pytest.approx(100)


def test_what_does_not_fit_is_named():
    with pytest.raises(ValueError, match="longer"):
        score_by_frequency(["a"], ["a", "b"], ["mid"], "en")
    assert "low" in message_of(score_by_frequency, ["a"], ["a"], ["mid"], "en")
