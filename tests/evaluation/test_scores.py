"""Scores against sacreBLEU's own functions."""

import json
import warnings
from types import SimpleNamespace

import pytest
import sacrebleu
from message_of import message_of

from kzoo.data import open_corpus, open_files
from kzoo.decoding import TextTranslator
from kzoo.evaluation import evaluate, score_table, score_translations
from kzoo.evaluation.scores import SplitScores, markdown_table, write_scores
from kzoo.text.bleu import bleu_metric

REFERENCES = ["Ein Mann schläft im Park.", "Zwei Hunde spielen am Strand.", "Eine Frau liest."]
TRANSLATIONS = [
    "Ein mann schläft in einem Park.",
    "Zwei Hunde spielen am Strand.",
    "Die Frau liest ein Buch.",
]


def test_languages_without_spaces_are_edited_by_characters():
    translations, references = ["こんにちは", "ขอบคุณ"], ["こんにちわ", "ขอบคุณ"]
    scores = score_translations("test", translations, references, "ja")
    assert scores.ter == pytest.approx(100 / sum(map(len, references)))
    assert scores.signatures["ter"].endswith("|split:char")


def test_scores_are_sacrebleu_s():
    scores = score_translations("test", TRANSLATIONS, REFERENCES, "de")
    assert scores.bleu == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES]).score
    assert scores.bleu_lowercased == sacrebleu.corpus_bleu(TRANSLATIONS, [REFERENCES], lowercase=True).score
    assert scores.chrf2 == sacrebleu.corpus_chrf(TRANSLATIONS, [REFERENCES]).score
    assert scores.ter == sacrebleu.corpus_ter(TRANSLATIONS, [REFERENCES]).score
    assert scores.bleu_lowercased > scores.bleu
    assert "case:mixed" in scores.signatures["bleu"]
    assert "case:lc" in scores.signatures["bleu_lowercased"]


def test_several_references_are_sacrebleu_s():
    more = [["Ein Mann schläft in einem Park.", "Hunde spielen.", "Die Frau liest ein Buch."]]
    scores, every = score_translations("test", TRANSLATIONS, REFERENCES, "de", more), [REFERENCES, *more]
    assert scores.bleu == sacrebleu.corpus_bleu(TRANSLATIONS, every).score
    assert scores.chrf2 == sacrebleu.corpus_chrf(TRANSLATIONS, every).score
    assert scores.ter == sacrebleu.corpus_ter(TRANSLATIONS, every).score
    assert all("nrefs:2" in signature for signature in scores.signatures.values())
    assert scores.bleu > score_translations("test", TRANSLATIONS, REFERENCES, "de").bleu


def test_where_a_further_reference_is_blank_there_is_none():
    more = ["Ein Mann schläft in einem Park.", "", " "]
    scores, every = (
        score_translations("test", TRANSLATIONS, REFERENCES, "de", [more]),
        [*more[:1], None, None],
    )
    for name, score in (
        ("bleu", sacrebleu.corpus_bleu),
        ("chrf2", sacrebleu.corpus_chrf),
        ("ter", sacrebleu.corpus_ter),
    ):
        assert getattr(scores, name) == score(TRANSLATIONS, [REFERENCES, every]).score
    assert "nrefs:var" in scores.signatures["bleu"]
    assert score_translations("test", ["こんにちは"], ["こんにちわ"], "ja", [[""]]).ter == pytest.approx(20)
    message = message_of(score_translations, "test", TRANSLATIONS, REFERENCES, "de", [more[:2]])
    assert "2 further" in message


def test_a_corpus_s_further_references_are_scored(tmp_path):
    files = [tmp_path / name for name in ("en", "de", "de2")]
    for file, word in zip(files, ("Tom", "Anna", "Tom"), strict=True):
        file.write_text(f"{word} and a long line\n")
    scores, _ = evaluate(Copier(), open_files(test=files), ["test"], "en", "de")
    assert scores[0].bleu == pytest.approx(100)


def test_forms_that_make_equal_words_differ_are_noticed():
    """Both read "schläft"."""
    with pytest.warns(UserWarning, match="1 of 3 .*NFC"):
        score_translations(
            "test", TRANSLATIONS, [REFERENCES[0].replace("ä", "a\u0308"), *REFERENCES[1:]], "de"
        )


def test_turkish_is_lowercased_as_turkish():
    scores = score_translations("test", ["ışık iyi , insan da ."], ["Işık iyi , I\u0307nsan da ."], "tr")
    assert scores.bleu_lowercased == pytest.approx(100)
    assert scores.bleu < 100
    assert scores.ter == 0
    assert all(scores.signatures[name].endswith("|lc:tr") for name in ("bleu_lowercased", "ter"))
    metric = bleu_metric("tr", lowercase=True)  # of validation
    assert metric.corpus_score(["ışık iyi , insan da ."], [["Işık iyi , İnsan da ."]]).score > 99
    assert "case:lc" in str(metric.get_signature())


def test_entities_that_bleu_does_not_see_are_noticed():
    texts, references = (
        ["Er sagt &quot;nein&quot; &amp; geht.", "A &copy; B"],
        ["Er sagt „nein“ & geht.", "A &copy; B"],
    )
    quoted = texts[0].replace("&quot;", '"').replace("&amp;", "&")
    assert sacrebleu.corpus_bleu([texts[0]], [[quoted]]).score > 99.9  # the reason for the warning
    with pytest.warns(UserWarning, match="1 of 2 .*&amp; &quot;,"):
        score_translations("test", texts, references, "de")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        score_translations("test", ["AT&T; R&D", "A &copy; B"], references, "de")


def test_chinese_takes_the_chinese_tokenizer():
    scores = score_translations("test", ["一个男人在睡觉。"], ["一个女人在睡觉。"], "zh")
    assert (
        scores.bleu
        == sacrebleu.corpus_bleu(["一个男人在睡觉。"], [["一个女人在睡觉。"]], tokenize="zh").score
    )


@pytest.mark.parametrize(
    ("code", "tokenizer"),
    [
        ("zh-CN", "zh"),
        ("zho", "zh"),
        ("zh_Hant", "zh"),
        ("ja", "char"),
        ("jap", "char"),
        ("lzh_Hans", "zh"),
        # As FLORES, NLLB and WMT write them.
        ("zho_Hans", "zh"),
        ("zho_Hant", "zh"),
        ("yue_Hant", "zh"),
        ("zho_Simp", "zh"),
        ("jpn_Jpan", "char"),
        ("tha_Thai", "char"),
        ("lao_Laoo", "char"),
        ("khm_Khmr", "char"),
        ("mya_Mymr", "char"),
        ("shn_Mymr", "char"),
        ("bod_Tibt", "char"),
        ("dzo_Tibt", "char"),
        ("kor_Hang", "13a"),
        ("deu_Latn", "13a"),
        ("de-AT", "13a"),
        ("ko", "13a"),
    ],
)
def test_the_tokenizer_is_the_language_s(code, tokenizer):
    assert f"tok:{tokenizer}" in score_translations("test", ["a b"], ["a c"], code).signatures["bleu"]


def test_ter_of_chinese_is_of_characters_without_marks():
    translations, references = ["一个男人，在睡觉。"], ["一个女人在睡觉。"]
    expected = sacrebleu.corpus_ter(translations, [references], normalized=True, asian_support=True)
    assert score_translations("test", translations, references, "zh").ter == expected.score == 25


def test_a_translation_for_each_reference():
    assert "val: " in message_of(score_translations, "val", [], [], "de")
    assert "2 references" in message_of(score_translations, "val", ["a"], ["a", "b"], "en")


class Copier(TextTranslator):
    """A translator whose translations are the sentences."""

    def translate(self, texts, **options):
        self.options = options
        return texts


@pytest.mark.usefixtures("few_scenes")
def test_evaluate_searches_as_it_is_told_or_else_as_the_translator_does():
    copier = Copier()
    whole = {"split_sentences": False, "source_language": "en", "target_language": "de"}
    told = {"beam_size": 3, "length_penalty": 0.6, "truncate": True, "progress": print}
    evaluate(copier, open_corpus("scenes"), ["val"], "en", "de", **told)
    assert copier.options == told | whole
    scores, _ = evaluate(copier, open_corpus("scenes"), ["val"], "en", "de")
    assert copier.options == whole
    assert [s.split for s in scores] == ["val"]


def test_evaluate_takes_the_tokenizer_of_the_target():
    pairs = ["一个男人在睡觉。"], ["一个女人在睡觉。"]
    corpus = SimpleNamespace(pairs=lambda *_: pairs, more_references=lambda *_: [])
    for score in evaluate(Copier(), corpus, ["val", "test"], "en", "zh")[0]:
        assert "tok:zh" in score.signatures["bleu"]


def test_evaluate_shows_the_images_of_each_split():
    shown = []
    reader = SimpleNamespace(
        image_shape=(2,), translate=lambda texts, images, **_: shown.append(images) or texts
    )
    corpus = SimpleNamespace(
        pairs=lambda *_: (["a"], ["b"]),
        more_references=lambda *_: [],
        images=lambda split: f"{split} of the corpus",
    )
    evaluate(reader, corpus, ["val", "test"], "en", "de")
    evaluate(reader, corpus, ["val", "test"], "en", "de", images={"val": "other", "test": "third"})
    assert shown == ["val of the corpus", "test of the corpus", "other", "third"]


def test_the_table_has_every_score_in_its_column_and_the_signatures_below():
    values = {"bleu": 31.24, "bleu_lowercased": 32.0, "chrf2": 55.5, "ter": 48.75}
    score = SplitScores("test", 1000, **values, signatures={"bleu": "nrefs:1", "ter": "case:lc"}, meteor=60.0)
    assert score_table([score]).splitlines() == [
        "| set | sentences | BLEU | BLEU, lowercased | chrF2 | TER | METEOR |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: |",
        "| test | 1000 | 31.2 | 32.0 | 55.5 | 48.8 | 60.0 |",
        "",
        "bleu: `nrefs:1`",
        "ter: `case:lc`",
    ]


def test_sets_with_other_references_have_their_own_signatures():
    scores = [SplitScores(split, 1, 1.0, 1.0, 1.0, 1.0, signatures={}) for split in ("val", "test", "all")]
    for score, count in zip(scores, (1, 2, 1), strict=True):
        score.signatures.update(bleu=f"nrefs:{count}", chrf2="nc:6")
    assert score_table(scores).splitlines()[-3:] == [
        "bleu (val, all): `nrefs:1`",
        "bleu (test): `nrefs:2`",
        "chrf2: `nc:6`",
    ]


def test_where_meteor_is_not_installed_nothing_names_it(tmp_path):
    scores = [SplitScores("test", 1, 1.0, 1.0, 1.0, 1.0, signatures={})]
    write_scores(scores, tmp_path / "scores.json")
    for text in (score_table(scores), (tmp_path / "scores.json").read_text()):
        assert "meteor" not in text.lower()


@pytest.mark.usefixtures("few_scenes")
def test_evaluate_scores_each_split_and_all_together(tmp_path):
    corpus = open_corpus("scenes")
    scores, translations = evaluate(Copier(), corpus, ["val", "test"], "en", "de")
    assert [s.split for s in scores] == ["val", "test", "all"]
    assert [s.sentences for s in scores] == [200, 200, 400]
    everything = corpus.sentences("val", "en") + corpus.sentences("test", "en")
    references = corpus.sentences("val", "de") + corpus.sentences("test", "de")
    assert scores[2].bleu == sacrebleu.corpus_bleu(everything, [references]).score
    assert translations["val"] == corpus.sentences("val", "en")
    assert f"| all | 400 | {scores[2].bleu:.1f} |" in score_table(scores)

    write_scores(scores, tmp_path / "scores.json", beam_size=5)
    content = json.loads((tmp_path / "scores.json").read_text())
    assert content["beam_size"] == 5
    assert content["scores"][2]["bleu"] == scores[2].bleu


def test_texts_are_left_and_numbers_right_and_no_name_breaks_its_cell():
    assert markdown_table(("task", "score", "a|b"), [("MR", "accuracy", "60.0")], left=2).splitlines() == [
        "| task | score | a\\|b |",
        "| --- | --- | ---: |",
        "| MR | accuracy | 60.0 |",
    ]
