"""The score of an epoch against sacreBLEU's own function."""

from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from keras import ops

from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.text.hypotheses import Hypothesis
from kzoo.training.validation import DirectionScores, TranslationScore

SOURCE, TARGET = ["A woman sleeps.", "A dog."], ["一个女人在睡觉。", "一只狗。"]
TRANSLATIONS = ["一个男人在睡觉。", "一只狗。"]


@pytest.mark.parametrize("told", [{"truncate": True, "images": "one a sentence"}, {"truncate": False}])
def test_the_set_is_translated_as_told_and_scored_as_its_language(told):
    asked, logs = [], {}

    def translate(texts, **options):
        asked.append((texts, options))
        return TRANSLATIONS

    score = TranslationScore(SOURCE, TARGET, "zh", **told)
    score.set_model(SimpleNamespace(translate=translate))
    score.on_epoch_end(0, logs)
    assert asked == [(SOURCE, {"beam_size": 1, "split_sentences": False, **told})]
    assert logs["val_bleu"] == sacrebleu.corpus_bleu(TRANSLATIONS, [TARGET], tokenize="zh").score
    assert logs["val_chrf2"] == sacrebleu.corpus_chrf(TRANSLATIONS, [TARGET]).score
    assert logs["val_seconds"] >= 0


def test_averaged_weights_do_not_meet_a_table_of_the_last_ones():
    """After the last epoch, which bakes a table, Keras's `use_ema` replaces the weights."""
    embedding = GlyphEmbedding(np.ones((6, 22, 22)), GlyphCharEncoder(4, "fc_1"))
    embedding.bake()
    score = TranslationScore(SOURCE, TARGET, "zh")
    score.set_model(SimpleNamespace(backbone=SimpleNamespace(layers=[embedding])))
    score.on_train_end()
    assert not ops.convert_to_numpy(embedding.baked)


def test_low_scores_are_the_5th_percentile_of_each_direction():
    def n_best(texts, n, split_sentences, truncate=False, source_language="en", target_language="zh"):
        assert (n, split_sentences) == (1, False)
        shift = shifts[source_language, target_language]
        return [[Hypothesis("", score - shift)] for score in np.linspace(-2, 0, 41)]

    shifts = {("en", "zh"): 0, ("en", "de"): 0, ("de", "en"): 1}
    translator = SimpleNamespace(n_best=n_best, languages=["en", "zh"])
    one = TranslationScore(SOURCE, TARGET, "zh")
    assert one.low_scores(translator) == {"en-zh": pytest.approx(-1.9)}
    several = DirectionScores({"en": SOURCE, "de": TARGET}, [("en", "de"), ("de", "en")])
    assert several.low_scores(translator) == pytest.approx({"en-de": -1.9, "de-en": -2.9})
