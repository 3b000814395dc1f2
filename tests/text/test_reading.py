"""How translators read capitals and characters that the vocabulary lacks."""

import unicodedata

import pytest
from message_of import message_of

from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate
from kzoo.text import CharacterTokenizer, train_subwords
from kzoo.text.hypotheses import Hypothesis
from kzoo.text.pieces import Subwords
from kzoo.text.preparation import RADICALS, known_forms
from kzoo.text.reading import UnknownCharactersWarning, read, restored

SENTENCES = ["Two men are sitting on a bench.", "A young girl in a pink dress is climbing up the stairs."]


@pytest.fixture(scope="module")
def preset():
    return CTranslate2Translator(locate("pope_small_multi30k_en_de"))


def capitals(text):
    return " ".join(word[0].upper() + word[1:] for word in text.split())


@pytest.mark.parametrize("form", [str.upper, capitals])
def test_a_text_in_capitals_is_translated_as_the_usual_one(form, preset):
    usual = preset.translate(SENTENCES)
    assert preset.translate(list(map(form, SENTENCES))) == list(map(form, usual))
    best = preset.n_best([form(SENTENCES[0])], 3)[0]
    assert [one.text for one in best] == [form(one.text) for one in preset.n_best([SENTENCES[0]], 3)[0]]


def test_a_title_of_words_that_are_one_subword_each_is_read_as_the_usual_text(preset):
    (usual,) = preset.translate(["A man in a red shirt"])
    assert preset.translate(["A Man In A Red Shirt"]) == [capitals(usual)]


@pytest.mark.parametrize("title", ["Two Men Are Sitting on a Bench.", "Two Men Are Standing with a Woman."])
def test_short_words_of_a_title_may_be_in_lower_case(title, preset):
    assert preset.translate([title]) == preset.translate([capitals(title)])


@pytest.mark.parametrize(
    "source, text",
    [
        ("de", "Der Hund ist im Park."),
        ("de", "Die Frau hält eine Geige."),
        ("en", "Barack Obama met Angela Merkel in Berlin."),
    ],
)
def test_a_sentence_with_many_capitals_is_no_title(source, text, preset):
    (reading,) = read(preset.source_tokenizer, [text], source)
    assert reading.tokens == preset.source_tokenizer([text])[0] and reading.restore is None


def test_a_word_in_capitals_leaves_the_others_as_they_are(preset):
    assert preset.translate(["A man next to a STOP sign."]) == preset.translate(
        ["A man next to a stop sign."]
    )


@pytest.mark.parametrize("phrase", ["Dogs", "Water", "Dogs.", "Parking lot", "Swimming pool"])
def test_the_first_word_of_a_phrase_is_read_as_within_a_sentence(phrase, preset):
    assert preset.translate([phrase]) == preset.translate([phrase.lower()])


@pytest.mark.parametrize("copied", ["你好", "Привет, мир!", "♪ ♪", "你好!!!!! 12", "〇"])
def test_what_is_mostly_unknown_is_copied(copied, preset):
    with pytest.warns(UnknownCharactersWarning, match="1 of 2 ") as told:
        found = preset.n_best([copied, "A dog runs."])
    assert told[0].filename == __file__
    assert [one.text for one in found[0]] == [copied]
    assert found[1][0].text == "Ein Hund rennt."
    assert repr(copied) in message_of(preset.translate, [copied], unknown="error")
    with pytest.warns(UnknownCharactersWarning):
        assert preset.translate([copied], unknown="translate") != [copied]
    assert "copy, error" in message_of(preset.translate, [copied], unknown="drop")


def test_an_unknown_character_is_named_and_the_rest_translated(preset):
    with pytest.warns(UnknownCharactersWarning, match=r"1 of 1 .* \('♪'\)$"):
        assert preset.translate(["A dog ♪ runs."], unknown="error") == ["Ein Hund rennt."]


def made(sentences, size):
    return Subwords(train_subwords(sentences, size))


def translated(tokenizer, text, source, target=None, translation="zwei istanbul"):
    """Return the text that is read, and what becomes of a translation."""
    readings = read(tokenizer, [text], source)
    ((best,),) = restored(readings, [[Hypothesis(translation, -1.0)]], [target])
    return tokenizer.detokenize([readings[0].tokens])[0], best.text


@pytest.fixture(scope="module")
def english():
    lines = ["Two men see the NATO flag in Rome.", "The men and the dog ran.", "I see John's dog in Rome."]
    return made(lines * 40, 95)


@pytest.mark.parametrize(
    "text, read_as, written",
    [
        ("TWO MEN IN ROME.", "Two men in Rome.", "ZWEI ISTANBUL"),
        ("THE MEN RAN. THE DOG RAN.", "The men ran. The dog ran.", "ZWEI ISTANBUL"),
        ("Two Men See The Dog", "Two men see the dog", "Zwei Istanbul"),
        ("THE NATO FLAG", "The NATO flag", "ZWEI ISTANBUL"),
        ("The MEN ran.", "The men ran.", "zwei istanbul"),
        ("The dOG ran.", "The dog ran.", "zwei istanbul"),
        ("Ran", "ran", "zwei istanbul"),
        ("Ran the dog.",) * 2 + ("zwei istanbul",),
        ("I SEE THE DOG", "I see the dog", "ZWEI ISTANBUL"),
        ("NATO", "NATO", "zwei istanbul"),
        ("Two men see the NATO flag in Rome.",) * 2 + ("zwei istanbul",),
        ("the men ran",) * 2 + ("zwei istanbul",),
        ("", "", "zwei istanbul"),
    ],
)
def test_case(text, read_as, written, english):
    assert translated(english, text, source="en") == (read_as, written)


def test_a_language_has_its_own_capitals(english):
    assert translated(english, "TWO MEN RAN", source="en", target="tr")[1] == "ZWEİ İSTANBUL"


@pytest.mark.parametrize("text", ["DNA和狗", "CD、DNA、狗和一只猫在跑"])
def test_capitals_in_a_text_without_case_are_no_text_in_capitals(text):
    chinese = made(["他有cd和dna。", "一只狗和一只猫在跑。"] * 40, 30)
    assert translated(chinese, text, source="zh", target="en")[1] == "zwei istanbul"


def test_german_nouns_keep_their_capital():
    german = made(["Der Hund ist im Haus.", "Zwei Hunde sehen das Haus und den Mann."] * 40, 88)
    assert translated(german, "Der Hund ist im Haus.", source="de")[0] == "Der Hund ist im Haus."
    assert translated(german, "Der Hund Ist Im Haus.", source="de")[0] == "Der Hund ist im Haus."
    assert translated(german, "ZWEI HUNDE SEHEN DAS HAUS.", source="de")[0] == "Zwei Hunde sehen das Haus."


def test_capitals_that_the_training_text_taught_stay():
    tokenizer = made(["TWO MEN RAN.", "two men ran.", "Two men ran."] * 40, 55)
    assert translated(tokenizer, "TWO MEN RAN.", source="en") == ("TWO MEN RAN.", "zwei istanbul")


def test_a_sentence_with_a_prefix_or_a_code_is_not_rewritten(english):
    reading, other = read(english, ["TWO MEN", "你好"], "en", prefixes=["zwei", "z"])
    assert reading.tokens == english(["TWO MEN"])[0] and reading.restore is None
    assert other.tokens == english(["你好"])[0] and other.lacking == "你好"
    (reading,) = read(english, [">>fra<<TWO MEN"], "en", codes=True)
    assert reading.tokens == english([">>fra<<Two men"])[0]
    (reading,) = read(english, [">>fra<<你好"], "en", codes=True)
    assert reading.restore("", "fr") == "你好"


def test_characters_that_draw_the_same_or_are_compatible_are_read_as_the_known_one():
    """Against Unicode's own decompositions; the radicals' names tell those that have none."""
    kangxi = [chr(code) for code in range(0x2F00, 0x2FD6)]
    ideographs = [chr(code) for code in range(0xF900, 0xFA6E)]
    wide = [chr(code) for code in range(0xFF01, 0xFF5F)]
    forms = {c: unicodedata.normalize("NFKC", c) for c in [*kangxi, *ideographs, *wide, "…", "㎏"]}
    forms |= {"⻓": "长", "⻔": "门", "⻅": "见", "⻢": "马", "⺟": "母", "⻰": "龙"}
    tokenizer = CharacterTokenizer(sorted(set("".join(forms.values())) | {"é"}))
    for character, form in forms.items():
        if character not in tokenizer.ids:
            assert known_forms(tokenizer, character) == (form, "")
    assert known_forms(tokenizer, "e\u0301\u200c\x07龘") == ("é龘", "龘")
    assert known_forms(tokenizer, "3\ufe0f!\u200d") == ("3!", "")
    assert known_forms(CharacterTokenizer(["3", "\ufe0f"]), "3\ufe0f") == ("3\ufe0f", "")
    assert known_forms(CharacterTokenizer(["３", "？"]), "3?") == ("３？", "")
    assert known_forms(CharacterTokenizer(["人", "⼈"]), "⼈人") == ("⼈人", "")  # both known


def test_every_radical_has_a_character():
    """But for U+2E80, for which Unicode names none."""
    block = [chr(code) for code in range(0x2E81, 0x2EF4) if code != 0x2E9A]
    assert all(unicodedata.normalize("NFKC", c.translate(RADICALS)) != c for c in block)
    written = [c.translate(RADICALS) for c in block]
    named = [unicodedata.name(c, "") for c in written]
    assert all(name.startswith(("CJK UNIFIED IDEOGRAPH", "CJK RADICAL")) for name in named)
