"""The score of an epoch against sacreBLEU's own function."""

from types import SimpleNamespace

import numpy as np
import pytest
import sacrebleu
from keras import ops

from kzoo.decoding import GNMT, SearchSettings, TextTranslator
from kzoo.engine.translator import CTranslate2Translator
from kzoo.layers import GlyphCharEncoder, GlyphEmbedding
from kzoo.presets import image_text_tiny, pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.reading import Reading, UnknownCharactersWarning
from kzoo.training.validation import DirectionScores, TranslationScore, on_fastest_engine

EN_ZH = ("en", "zh")
SIZES = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 24, "max_length": 16}
SOURCE, TARGET = ["A woman sleeps.", "A dog."], ["一个女人在睡觉。", "一只狗。"]
TRANSLATIONS = ["一个男人在睡觉。", "一只狗。"]


class Translates(TextTranslator):
    """Finds given translations of sentences whose words are tokens, at most two."""

    max_length, search = 3, SearchSettings(4, max_length=9)

    def __init__(self, found, image_shape=None):
        self.found, self.image_shape, self.tokenized, self.asked = found, image_shape, [], []
        self.source_language, self.target_language = EN_ZH

    def source_tokenizer(self, texts):
        self.tokenized += texts
        return [[5] * len(text.split()) for text in texts]

    target_tokenizer = source_tokenizer

    def n_best_of_rows(self, rows, n, search, direction):
        assert (n, rows.prefixes, direction) == (1, None, EN_ZH)
        self.asked.append((rows.tokens, search, rows.images))
        return [[found] for found in self.found]


@pytest.mark.parametrize("shown", [None, np.ones((2, 3))])
def test_the_set_is_translated_as_told_and_scored_as_its_language(shown):
    model = Translates([Hypothesis(text, 0.0) for text in TRANSLATIONS], None if shown is None else (3,))
    readings = model.sentences_read(SOURCE, model.direction(), truncate=True)
    score, logs = TranslationScore(readings, TARGET, "zh", EN_ZH, shown), {}
    score.set_model(model)
    for epoch in range(2):
        score.on_epoch_end(epoch, logs)
    assert model.tokenized == SOURCE  # once
    (tokens, search, images), _ = model.asked
    assert tokens == [[5, 5], [5, 5]]  # cut
    assert search == SearchSettings(1, max_length=9)
    np.testing.assert_array_equal(images, shown)
    assert logs["val_bleu"] == sacrebleu.corpus_bleu(TRANSLATIONS, [TARGET], tokenize="zh").score
    assert logs["val_chrf2"] == sacrebleu.corpus_chrf(TRANSLATIONS, [TARGET]).score
    assert logs["val_seconds"] >= 0


def test_averaged_weights_do_not_meet_a_table_of_the_last_ones():
    """After the last epoch, which bakes a table, Keras's `use_ema` replaces the weights."""
    embedding = GlyphEmbedding(np.ones((6, 22, 22)), GlyphCharEncoder(4, "fc_1"))
    embedding.bake()
    score = TranslationScore([Reading([5])] * 2, TARGET, "zh", EN_ZH)
    score.set_model(SimpleNamespace(backbone=SimpleNamespace(layers=[embedding])))
    score.on_train_end()
    assert not ops.convert_to_numpy(embedding.baked)


def test_characters_that_the_vocabulary_lacks_are_warned_of():
    with pytest.warns(UnknownCharactersWarning, match="ß"):
        TranslationScore([Reading([5]), Reading([3], lacking="ß")], TARGET, "zh", EN_ZH)


def test_low_scores_are_the_5th_percentile_of_each_direction():
    class Several(Translates):
        def n_best_of_rows(self, rows, n, search, direction):
            assert search is self.search
            return [[Hypothesis("", score - shifts[direction])] for score in np.linspace(-2, 0, 41)]

    shifts = {EN_ZH: 0, ("en", "de"): 0, ("de", "en"): 1}
    translator, dogs, readings = Several([]), ["A dog."] * 41, [Reading([5])] * 41
    scores = {pair: TranslationScore(readings, dogs, pair[1], pair) for pair in shifts}
    assert scores.pop(EN_ZH).low_scores(translator) == {"en-zh": pytest.approx(-1.9)}
    several = DirectionScores(scores)
    assert several.low_scores(translator) == pytest.approx({"en-de": -1.9, "de-en": -2.9})


def test_case_is_ignored_where_models_output_lower_case():
    target = ["Ein Hund rennt im Park.", "Eine Frau liest."]
    model = Translates([Hypothesis(sentence.lower(), 0.0) for sentence in target])
    score = TranslationScore([Reading([5])] * 2, target, "de", EN_ZH, lowercase=True)
    assert score.scores(model) == pytest.approx((100, 100))


def test_a_small_transformer_is_scored_by_ctranslate2_as_by_keras():
    texts = ["a man", "a dog runs", "the girl"]
    translator = pope_tiny(SubwordTokenizer(train_subwords(texts * 9, 25)), **SIZES)
    random = np.random.default_rng(1)
    translator.set_weights([random.normal(0, 0.5, weight.shape) for weight in translator.get_weights()])
    translator.search = SearchSettings(2)
    score = TranslationScore(translator.sentences_read(texts, EN_ZH), texts, "en", EN_ZH)
    expected = [best.text for (best,) in translator.n_best(texts, 1, beam_size=1)]
    score.target = [f"{expected[0]} a", *texts[1:]]
    expected, logs = score.scores(translator), {}
    translator.n_best_of_rows = None  # Keras's search
    score.set_model(translator)
    score.on_epoch_end(0, logs)
    assert (logs["val_bleu"], logs["val_chrf2"]) == expected > (0, 0)
    assert score.low_scores(translator) == {"en-zh": score.low_score(CTranslate2Translator.of(translator))}
    several = DirectionScores({EN_ZH: score})
    several.set_model(translator)
    several.on_epoch_end(0, logs := {})
    assert (logs["val_bleu"], logs["val_chrf2"]) == expected


def test_keras_scores_what_ctranslate2_cannot(monkeypatch, tmp_path):
    tokenizer = SubwordTokenizer(train_subwords(["a man", "a dog runs"] * 9, 20))
    reader = image_text_tiny(tokenizer, image_shape=(2, 6), **SIZES)
    assert on_fastest_engine(reader) is reader
    translator = pope_tiny(tokenizer, **SIZES)
    assert on_fastest_engine(translator) is not translator
    for search in (SearchSettings(length_penalty=GNMT(0.6)), SearchSettings(min_length=3)):
        translator.search = search
        assert on_fastest_engine(translator) is translator
    translator.search = SearchSettings()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "full"))
    assert on_fastest_engine(translator) is translator
