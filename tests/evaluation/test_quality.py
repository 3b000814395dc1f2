"""The end of a run: intervals, examples, and what the curves say."""

import numpy as np
import pytest
from sacrebleu import corpus_bleu, corpus_chrf, sentence_chrf

from kzoo.evaluation.quality import examples, most_helpful, scores_with_intervals, write_quality

WORDS = np.array(["ein", "zwei", "Hund", "Katze", "rennt", "schläft", "im", "Park", ".", "groß", "rot"])


@pytest.fixture
def texts(random):
    """40 references, and translations with more and more other words."""
    references = [" ".join(random.choice(WORDS, 8)) for _ in range(40)]
    translations = []
    for number, reference in enumerate(references):
        words = np.array(reference.split())
        changed = random.random(8) < number / 60
        translations.append(" ".join(np.where(changed, random.choice(WORDS, 8), words)))
    return references, translations


def test_scores_and_intervals_are_those_of_samples_of_sentences(texts):
    references, translations = texts
    draws = np.random.default_rng(7).integers(0, 40, (400, 40))
    for score, corpus_score in zip(
        scores_with_intervals(translations, references, "de"), (corpus_bleu, corpus_chrf), strict=True
    ):
        assert score.score == corpus_score(translations, [references]).score
        samples = [
            corpus_score([translations[i] for i in draw], [[references[i] for i in draw]]).score
            for draw in draws
        ]
        low, high = np.percentile(samples, [2.5, 97.5])
        assert abs(score.mean - np.mean(samples)) < 1.0
        assert (high - low) / 2 == pytest.approx(score.interval, rel=0.2)
        assert "bs:1000" in score.signature


def test_translations_without_a_right_word_have_no_interval():
    for score in scores_with_intervals(["x"], ["Hund"], "de"):
        assert (score.score, score.interval) == (0.0, 0.0)


def test_examples_are_the_best_the_median_and_the_worst(texts):
    references, translations = texts
    found = examples(references, references, translations)
    scores = [sentence_chrf(case.translations[0], [case.reference]).score for case in found]
    pairs = zip(translations, references, strict=True)
    every = sorted((sentence_chrf(text, [true]).score for text, true in pairs), reverse=True)
    assert scores == every[:3] + every[18:22] + every[-3:]
    assert len(examples(references[:7], references[:7], translations[:7])) == 7


@pytest.mark.parametrize(
    ("bleu", "loss", "advice"),
    [
        ([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], [5, 4.5, 4, 3.5, 3, 2.8, 2.6, 2.4, 2.2, 2.1], "time"),
        ([1, 4, 7, 9, 8, 9, "", 8, 9, 8], [5, 4.5, 4, 3.5, 3, 2.8, 2.6, 2.4, 2.2, 2.1], "text"),
        ([1, 4, 7, 9, 8, 9, 9, 8, 9, 8], [5, 4, 3.1, 3, 3, 3, 2.99, 3, 2.99, 2.98], "larger"),
        ([""] * 10, range(10, 0, -1), ""),
    ],
)
def test_what_would_help_most(tmp_path, bleu, loss, advice):
    path = tmp_path / "history.csv"
    lines = [
        f"{epoch},{loss},{bleu},1.0" for epoch, (bleu, loss) in enumerate(zip(bleu, loss, strict=True), 1)
    ]
    # The cooldown's score, above all others, says nothing.
    path.write_text("\n".join(["epoch,loss,val_bleu,rate_factor", *lines, "11,1.9,20.0,0.5"]))
    found = most_helpful(path)
    assert advice in found
    assert bool(found) == bool(advice)


def test_the_page_has_scores_and_marked_examples(tmp_path, texts):
    references, translations = texts
    scores, chosen = scores_with_intervals(translations, references, "de"), examples(references, *texts)
    write_quality(tmp_path / "report.html", "a <run>", scores, chosen, ("en", "de"), 40, "More text.")
    page = (tmp_path / "report.html").read_text("utf-8")
    assert "a &lt;run&gt;" in page
    assert f"{scores[0].score:.1f}" in page
    assert page.count("<article") == 10
    assert "<mark>" in page
