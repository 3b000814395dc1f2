"""Moses's form of text, and the subwords made of it."""

import json
import tracemalloc

import keras
import pytest
import sacremoses

from kzoo.errors import UserError
from kzoo.text import (
    MosesSubwordTokenizer,
    SubwordTokenizer,
    TruecasedSubwordTokenizer,
    learn_forms,
    moses_text,
    moses_tokens,
    train_subwords,
)

GERMAN = [
    "Ein Mann sieht, wie die Frau in Berlin läuft.",
    "Die Frau und ein Mann: „Ein Hund/Wolf!“",
    "Wo läuft ein Hund?",
]


def test_moses_text_is_normalized_split_and_lowercased():
    assert (
        moses_text("Don't „see“ it – yes, it's 3.5%…", "en") == "don 't \" see \" it - yes , it 's 3.5 % ..."
    )
    for language in ("fr", "fr-CA", "FR_ca", "fra"):
        assert moses_text("L'homme n'a pas vu.", language) == "l' homme n' a pas vu ."


@pytest.mark.parametrize("language", ["fr", "fr-CA", "fra"])
def test_subwords_come_back_as_plain_lowercase_text(language):
    sentences = ["L'homme, il n'a pas vu l'école.", "Une école?"]
    text = [moses_text(s, language) for s in sentences] * 20
    tokenizer = MosesSubwordTokenizer(train_subwords(text, 60), language=language)
    assert tokenizer.detokenize(tokenizer(sentences)) == ["l'homme, il n'a pas vu l'école.", "une école ?"]
    again = keras.saving.deserialize_keras_object(keras.saving.serialize_keras_object(tokenizer))
    again.set_proto(tokenizer.proto)
    assert again(sentences) == tokenizer(sentences)


@pytest.mark.parametrize("language", ["en", "zh"])
def test_line_ends_are_no_tokens(language):
    plain = moses_tokens("A man walks . 他走", language)
    assert moses_tokens("A man\r\nwalks .\u2028他走\r\r\n", language) == plain


def test_an_accent_of_its_own_is_part_of_its_letter():
    assert moses_text("Ein Ma\u0308dchen", "de") == moses_text("Ein Mädchen", "de") == "ein mädchen"


def test_czech_numbers_keep_their_space():
    sentences = ["číslem 55 brání hráče s číslem 10.", "v roce 2012, 3,5 metru, kdo-li."]
    tokenizer = MosesSubwordTokenizer(language="cs")
    assert [tokenizer.plain(tokenizer.normalize(sentence)) for sentence in sentences] == sentences


@pytest.mark.parametrize(
    ("language", "sentence"),
    [
        ("ar", "نعم، هذا كتاب؛ ما هذا؟"),
        ("hi", "यह एक घर है।"),
        ("fa", "این چیست؟"),
        ("am", "ሰላም፣ እንዴት ነህ?"),
        ("ca", "la col·legiala és intel·ligent."),
        ("he", "הרמטכ״ל אמר כן."),
        ("ja", "本当ですか？はい（そうです）！"),
    ],
)
def test_other_marks_are_joined_to_their_words(language, sentence):
    tokenizer = MosesSubwordTokenizer(language=language)
    assert tokenizer.plain(tokenizer.normalize(sentence)) == sentence


def test_a_georgian_sentence_begins_with_a_small_letter():
    assert TruecasedSubwordTokenizer(language="ka").plain("კაცი მიდის .") == "კაცი მიდის."


def test_turkish_has_two_kinds_of_i():
    assert moses_text("İnsan ISLAK, Işık iyi.", "tr") == "insan ıslak , ışık iyi ."
    assert moses_text("ISLAND", "en") == "island"
    with pytest.raises(UserError, match="'az-Latn'"):
        TruecasedSubwordTokenizer(language="az-Latn")


@pytest.mark.parametrize("language", ["zh", "zh-CN", "zh_Hant", "cmn"])
def test_chinese_comes_back_without_the_spaces_that_moses_puts_in(language):
    sentences = ["天气很好，他在跑步。", "他说：“你好！”", "他在NBA 球场（北京）打球……", "3 月 5 日，OK。"]
    sentences.append("伯拉罕·林肯，总统。")
    sentences.append("他在吃𰻝𰻝面。")  # a character of 2020, which sacremoses does not know
    kind = TruecasedSubwordTokenizer(language=language)
    tokens = [kind.normalize(sentence) for sentence in sentences]
    assert tokens[0] == "天气很好 ， 他在跑步。"
    back = [kind.plain(text) for text in tokens]
    assert back == sentences


@pytest.fixture(scope="module")
def truecased():
    forms = learn_forms(moses_tokens(sentence, "de") for sentence in GERMAN)
    tokenizer = TruecasedSubwordTokenizer(language="de", forms=forms)
    tokenizer.set_proto(train_subwords([*map(tokenizer.normalize, GERMAN)] * 20, 60))
    return tokenizer


def test_forms_are_counted_as_sacremoses_does_without_holding_the_text():
    lines = [moses_tokens(sentence, "de") for sentence in GERMAN]
    casing = sacremoses.MosesTruecaser().train([line.split() for line in lines])["casing"]
    assert learn_forms(lines) == [[form for form, _ in counts.most_common()] for counts in casing.values()]
    tracemalloc.start()
    learn_forms(f"He saw the man {number % 50} ." for number in range(10_000))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2**20


def test_truecased_subwords_come_back_with_capitals(truecased):
    assert truecased.normalize(GERMAN[0]) == "ein Mann sieht , wie die Frau in Berlin läuft ."
    assert truecased.detokenize(truecased(GERMAN)) == [
        GERMAN[0],
        'Die Frau und ein Mann: "Ein Hund / Wolf!"',
        GERMAN[2],
    ]
    assert truecased(["Die Frau"]) == truecased(["die Frau"])
    assert truecased.detokenize(truecased(["EIN HUND LÄUFT", ""])) == ["Ein Hund läuft", ""]


def test_truecased_subwords_are_saved_whole(truecased, tmp_path):
    tokenizer = TruecasedSubwordTokenizer(
        language="de", forms=[["Hund"]], config_file="target_tokenizer.json"
    )
    tokenizer.set_proto(truecased.proto)
    for one in (truecased, tokenizer):
        one.save_to_preset(str(tmp_path))
        configuration = json.loads((tmp_path / one.config_file).read_text())
        again = keras.saving.deserialize_keras_object(configuration)
        again.load_preset_assets(str(tmp_path))
        assert again.language == "de"
        sentences = [*GERMAN, "HUND und MANN"]
        assert [again.normalize(s) for s in sentences] == [one.normalize(s) for s in sentences]
        assert again(sentences) == one(sentences)
    forms = json.loads((tmp_path / "assets" / "target_tokenizer" / "truecaser.json").read_text())
    assert forms == [["Hund"]]


def test_only_plain_subwords_run_in_a_graph(truecased):
    pytest.importorskip("tensorflow_text")
    from kzoo.export.graph_inputs import graph_tokenizer

    with pytest.raises(UserError, match="TruecasedSubwordTokenizer") as error:
        graph_tokenizer(truecased)
    assert "\n" not in str(error.value)
    assert SubwordTokenizer(truecased.proto).normalize(GERMAN[0]) == GERMAN[0]
