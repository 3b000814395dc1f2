"""Intervals and p against trials written here, each with sacreBLEU's corpus BLEU."""

import numpy as np
import pytest
from message_of import message_of
from sacrebleu import corpus_bleu

from kzoo.data import open_corpus
from kzoo.evaluation import compare_bleu, comparison_table


@pytest.fixture(scope="module")
def references():
    return open_corpus("scenes").sentences("test", "de")[:40]


def worse(sentences, every, random):
    """Leave a word out of each of some sentences."""
    found = []
    for number, sentence in enumerate(sentences):
        words = sentence.split()
        if number % every == 0:
            words.pop(random.integers(len(words)))
        found.append(" ".join(words))
    return found


def test_several_references(references, random):
    systems = [("a", worse(references, 3, random)), ("b", worse(references, 4, random))]
    other = worse(references, 2, random)
    compared, signature = compare_bleu(systems, references, "de", [other])
    assert "nrefs:2" in signature
    for row, (_, texts) in zip(compared, systems, strict=True):
        assert row.bleu == pytest.approx(corpus_bleu(texts, [references, other]).score)
    same, _ = compare_bleu([systems[0], ("again", systems[0][1])], references, "de", [other])
    assert same[1].p == 1


def test_intervals_and_p_are_those_of_trials_of_ours(references, random):
    systems = [("a", worse(references, 3, random)), ("b", worse(references, 4, random))]
    compared, signature = compare_bleu(systems, references, "de")
    count = len(references)
    for row, (_, texts) in zip(compared, systems, strict=True):
        assert row.bleu == pytest.approx(corpus_bleu(texts, [references]).score)
        draws = [bleu(texts, references, random.integers(count, size=count)) for _ in range(150)]
        assert row.mean == pytest.approx(np.mean(draws), abs=1)
        assert row.interval == pytest.approx(np.diff(np.quantile(draws, (0.025, 0.975)))[0] / 2, rel=0.3)
    difference = abs(compared[1].bleu - compared[0].bleu)
    both, larger = np.array([texts for _, texts in systems]), 0
    for _ in range(150):
        exchanged = random.integers(2, size=count)
        one, other = both[exchanged, np.arange(count)], both[1 - exchanged, np.arange(count)]
        larger += abs(bleu(one, references) - bleu(other, references)) >= difference
    assert compared[0].p is None
    assert compared[1].p == pytest.approx(larger / 150, abs=0.12)
    assert 0.05 < compared[1].p < 0.9  # not so clear that any test would agree
    assert "bs:1000|seed:12345" in signature
    assert "tok:13a" in signature


def bleu(texts, references, rows=None):
    rows = range(len(texts)) if rows is None else rows
    return corpus_bleu([texts[row] for row in rows], [[references[row] for row in rows]]).score


def test_equal_models_do_not_differ_and_very_different_ones_do(references, random):
    systems = [("same", references), ("again", references), ("bad", worse(references, 1, random))]
    compared, signature = compare_bleu(systems, references, "de")
    same, again, bad = compared
    assert (same.bleu, again.bleu, same.interval) == pytest.approx((100, 100, 0))
    assert again.p == 1
    assert bad.p < 0.01
    table = comparison_table(compared, signature)
    assert table.splitlines()[2] == "| same | 100.0 | 100.0 ± 0.0 |  |"
    assert "bs:1000" in table and "10,000 random exchanges" in table


@pytest.mark.parametrize(("count", "p"), [(1, 1), (2, 1 / 2), (3, 1 / 4), (6, 1 / 32)])
def test_p_of_few_sentences_all_worse_is_that_of_all_exchanges(references, count, p):
    """Of the 2^count ways to exchange them, two have the whole difference."""
    shorter = [" ".join(sentence.split()[1:]) for sentence in references[:count]]
    compared, _ = compare_bleu([("a", references), ("b", shorter + references[count:])], references, "de")
    assert compared[1].p == pytest.approx(p)


def test_no_sentences_are_refused():
    assert "sentences" in message_of(compare_bleu, [("a", []), ("b", [])], [], "de")


def test_numbers_of_sentences_that_differ_are_refused(references):
    for systems, name in (
        ([("a", references), ("b", references[1:])], "b: 39 translations but 40"),
        ([("a", references)], "two models"),
    ):
        assert name in message_of(compare_bleu, systems, references, "de")
    systems = [("a", references), ("b", references)]
    assert "39 further" in message_of(compare_bleu, systems, references, "de", [references[1:]])
