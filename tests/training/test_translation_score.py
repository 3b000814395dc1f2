"""The score of an epoch against sacreBLEU's own function."""

from types import SimpleNamespace

import pytest
import sacrebleu

from kzoo.training.validation import TranslationScore

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
    assert logs["val_seconds"] >= 0
