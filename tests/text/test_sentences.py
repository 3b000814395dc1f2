"""Splitting texts into sentences."""

import pytest
from message_of import message_of

from kzoo.text.directions import TwoLanguages
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.languages import TWO_LETTERS, main_code, matching_code, not_known
from kzoo.text.sentences import SplitTexts, split_sentences

TEXTS = {
    "en": "Mr. Smith met Ms. Jones at 5 p.m. in the U.S. Capitol. | He paid $3.50!",
    "de": "Dr. Müller kam z. B. am 3. Oktober. | Er wurde im 19. Jahrhundert geboren. | Ist das wahr? | Ja.",
    "fr": "M. Dupont est arrivé. | « Bonjour ! » dit-il. | Est-ce vrai ? | Oui !",
    "cs": "Muž jde okolo nápisu E.S.E. Electronics. | Dne 3. října, např. ráno, přijel.",
    "zh": "你会说英语吗?|我不会。",
    "ko": "문을 닫을 것. | 불을 끌 것.",
    "zh_Hant": "一隻狗在跑。|兩個男人坐著。|真的嗎？|GDP增長3.5%。",
    "ja": "犬が走る。|男が座る。",
    "hi": "कुत्ता दौड़ता है। | दो आदमी बैठे हैं।",
    "tlh": "A dog runs. | Two men sit on a bench.",
}


@pytest.mark.parametrize("language", TEXTS)
def test_sentences_end_where_a_reader_sees_an_end(language):
    expected = TEXTS[language].split("|")
    found = split_sentences("".join(expected).replace("  ", " "), language)
    assert [sentence.strip() for sentence in found] == [sentence.strip() for sentence in expected]


def test_codes_of_three_letters_have_their_languages_rules():
    for language in ("deu", "ger"):
        assert len(split_sentences("Frau Prof. Müller kommt ggf. Montag.", language)) == 1


@pytest.mark.parametrize("text", ["", " ", "A.\nB\n\nC. D.  ", " A dog.\r\nIt runs. ", "。", "?!", "1."])
def test_the_sentences_are_the_text(text):
    assert "".join(split_sentences(text, "en")) == text


@pytest.mark.parametrize("space", ["\u00a0", "\u202f", "\u2009", "\u3000"])
@pytest.mark.parametrize("language", [None, "en", "fr", "zh", "ar"])
def test_a_capital_before_an_unusual_space(space, language):
    text = f"He has a plan B{space}. It works."
    assert "".join(split_sentences(text, language)) == text


def test_lines_are_sentences():
    assert split_sentences("A dog\nTwo dogs\n\n") == ["A dog\n", "Two dogs\n\n"]


def test_a_target_language_before_a_text_is_before_each_sentence():
    texts = [" >> fr << A dog. It runs.", "A dog. It runs."]
    split = SplitTexts(texts, [("en", "mul"), ("en", "deu")], True, ["fra", "deu"])
    assert split.sentences == [">>fra<< A dog.", ">>fra<<It runs.", "A dog.", "It runs."]
    own = SplitTexts([">>deu<< A dog."], [("en", "fra")], False, ["fra", "deu"])
    assert own.sentences == [">>deu<< A dog."]
    assert SplitTexts(texts, [("en", "mul")] * 2, True).sentences[1] == "It runs."  # where it is just text
    assert "sentence 2" in message_of(SplitTexts, texts, [("en", "mul")] * 2, True, ["fra", "deu"])


def test_translations_are_joined_as_in_the_language_that_a_text_names():
    texts = [">>cmn_Hans<< A dog. It runs.", "A dog. It runs."]
    split = SplitTexts(texts, [("en", "fra")] * 2, True, ["fra", "cmn_Hans"])
    found = [[Hypothesis(text, -1.0)] for text in ("狗。", "它跑。", "Un chien.", "Il court.")]
    joined = split.join(found)
    assert [best.text for (best,) in joined] == ["狗。它跑。", "Un chien. Il court."]


@pytest.mark.parametrize(
    ("code", "between"),
    [("th", " "), ("tha", " "), ("lo", " "), ("km", " "), ("my", " "), ("fr", " "), ("ja", ""), ("zht", "")],
)
def test_translations_are_joined_as_the_language_is_written(code, between):
    split = SplitTexts(["A man. A dog."], [("en", code)], True)
    joined = split.join([[Hypothesis("a", -1.0)], [Hypothesis("b", -1.0)]])
    assert joined[0][0].text == f"a{between}b"


@pytest.mark.parametrize(("language", "several"), [("en", 0), ("de", 2), ("fr", 0), ("cs", 0)])
def test_captions_are_single_sentences(multi30k, language, several):
    """All of Multi30k's test captions; two in German do have two sentences."""
    tests = [
        split for split in multi30k.splits if "test" in split and language in multi30k.languages_in(split)
    ]
    captions = [caption for split in tests for caption in multi30k.sentences(split, language)]
    assert sum(len(split_sentences(caption, language)) > 1 for caption in captions) == several


@pytest.mark.parametrize(
    ("given", "known", "found"),
    [
        ("en-GB", ["de", "en"], "en"),
        ("DE", ["de", "en"], "de"),
        ("eng", ["de", "en"], "en"),
        ("fr", ["deu", "fra"], "fra"),
        ("fre", ["deu", "fra"], "fra"),
        ("zh", ["deu", "cmn_Hans"], "cmn_Hans"),
        ("zh_hant", ["cmn_Hans", "cmn_Hant"], "cmn_Hant"),
        ("zh", ["cmn_Hans", "cmn_Hant"], None),
        ("zh-Hant", ["cmn_Hans"], None),
        ("zh-TW", ["zho_Hans", "zho_Hant"], "zho_Hant"),  # CLDR's likely scripts
        ("zh_CN", ["zho_Hans", "zho_Hant"], "zho_Hans"),
        ("cmn-SG", ["zho_Hans", "zho_Hant"], "zho_Hans"),
        ("zh_hk", ["zho_Hans", "zho_Hant"], "zho_Hant"),
        ("zh-TW", ["zho_Hans"], None),
        ("zh_Hant", ["zh-CN", "zh-TW"], "zh-TW"),
        ("zh-TW", ["zh"], "zh"),
        ("sr-Latn", ["srp_Cyrl", "srp_Latn"], "srp_Latn"),
        ("pt-PT", ["pt", "pt_BR"], "pt"),
        ("pt", ["pt", "pt_BR"], "pt"),
        ("nb", ["nob", "nno"], "nob"),
        ("yue", ["zh"], None),
        ("no", ["nno_Latn", "nob_Latn"], None),
        ("nb", ["no", "sv"], "no"),
        ("nso", ["ns", "nl"], "ns"),
        ("en-GB", ["eng_Latn", "deu_Latn"], "eng_Latn"),
        ("zho", ["zho_Hans", "zho_Hant"], None),
        ("srp", ["srp_Cyrl", "srp_Latn"], None),
        ("ff", ["fuv_Latn", "ful_Adlm"], None),
        ("ku", ["kmr_Latn", "ckb_Arab"], "kmr_Latn"),
        ("it", ["deu", "fra"], None),
        ("", ["de"], None),
    ],
)
def test_a_code_finds_the_one_that_fits(given, known, found):
    assert matching_code(given, known) == found


@pytest.mark.parametrize(
    ("given", "known", "likely"),
    [
        ("zho", ["zho_Hans", "zho_Hant"], "zho_Hans or zho_Hant?"),
        ("sr-Latn", ["srd_Latn", "srp_Cyrl"], "mean srp_Cyrl?"),
        ("uz-Cyrl", ["ukr_Cyrl", "uzn_Latn"], "mean uzn_Latn?"),
        ("zh-TW", ["zho_Hans", "yue_Hant"], "mean zho_Hans?"),
    ],
)
def test_an_unknown_code_s_error_names_the_same_language(given, known, likely):
    assert likely in not_known(given, known)


def test_codes_of_three_letters_have_one_of_two():
    assert {len(code) for code in TWO_LETTERS} == {3}
    assert {len(code) for code in TWO_LETTERS.values()} == {2}
    assert all(main_code(code.upper()) == two for code, two in TWO_LETTERS.items())


@pytest.mark.parametrize(
    ("own", "given", "taken"),
    [
        ("roa", "fr", True),  # Romance languages
        ("mul", "de", True),
        ("deu+eng", "de", True),
        ("deu+eng", "fr", False),
        ("fra", "fr-CA", True),
        ("fra", "de", False),
    ],
)
def test_a_source_may_be_one_of_a_group_of_languages(own, given, taken):
    translator = TwoLanguages()
    translator.source_tokenizer, translator.source_language, translator.target_language = None, own, "eng"
    if taken:
        assert translator.direction(given, "en") == ("deu" if own == "deu+eng" else own, "eng")
    else:
        assert own.split("+")[0] in message_of(translator.direction, given, "en")


def test_withdrawn_codes_mean_those_of_today():
    for given, own in {"iw": "he", "in_ID": "ind_Latn", "ji": "ydd_Hebr", "jw": "jav_Latn"}.items():
        assert matching_code(given, ["en", own]) == own
    assert matching_code("heb", ["en", "iw"]) == "iw"
    assert matching_code("it", ["in", "iw"]) is None
