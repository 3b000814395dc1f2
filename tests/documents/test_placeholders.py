"""Placeholders come through, or the text stays; the translators are made up."""

import re

import pytest
from made_up import MadeUp, in_order

from kzoo.documents.inline import Inline, pieces_of, texts, whole
from kzoo.documents.placeholders import has_words, keeps
from kzoo.documents.translating import DONE, keeping_placeholders, next_step, run_steps, translating


@pytest.mark.parametrize(
    ("text", "placeholders"),
    [
        ("Hello {0} and {name!r:>3}, {{user.name}}", ["{0}", "{name!r:>3}", "{{user.name}}"]),
        ("${x} of %s, %(name)s, %1$d%%, %-5.2f", ["${x}", "%s", "%(name)s", "%1$d", "%%", "%-5.2f"]),
        ("100% sure, 50%-off", ["100", "50"]),
        ("See https://a.b/c?d=1&e (or www.a.b/x).", ["https://a.b/c?d=1&e", "www.a.b/x"]),
        ("Ask a.b+c@d-e.org.", ["a.b+c@d-e.org"]),
        ("On 24.12.2024 at 7:30, 1,000.5 km, 1st, B2B", ["24.12.2024", "7:30", "1,000.5"]),
        ("Open [X5X] or [X 5X], a [X12X].", ["[X5X]", "[X12X]"]),
        ("Tom &amp; {n, plural, other {# cats}}", ["&amp;", "{n, plural, other {# cats}}"]),
        ("# of :count, $t(my.key), #tag, C#, a: b", ["#", ":count", "$t(my.key)", "#tag"]),
        ("第18章有1,000人", ["18", "1,000"]),  # of languages without spaces
    ],
)  # fmt: skip
def test_what_is_a_placeholder(text, placeholders):
    """A text without one of them, or with one twice, does not keep them; its words may change."""
    assert keeps(text, f"X {text} y")
    for placeholder in placeholders:
        assert not keeps(text, text.replace(placeholder, "", 1)), placeholder
        assert not keeps(text, f"{text} {placeholder}")
        assert not has_words(placeholder)


@pytest.mark.parametrize(
    ("text", "translation", "kept"),
    [
        ("三只狗", "3 dogs", True),
        ("3 dogs, 3 cats", "3只狗，三只猫", True),
        ("一万二千零五人，二十五人", "12,005 people, 25", True),
        ("二〇二四年", "In 2024", True),
        ("一万亿，三亿五千万", "1,000,000,000,000 and 350,000,000", True),
        ("两亿三千万", "230000000", True),
        ("1,200 people", "一千二百人", True),
        ("三只狗", "4 dogs", False),
        ("三只狗", "3 dogs and 3 cats", False),
        ("3 dogs", "狗", False),
        ("三只狗{x}", "3 dogs", False),
        ("一" * 5000, "5 dogs", False),
    ],
)
def test_numbers_in_chinese_words_are_numbers(text, translation, kept):
    assert keeps(text, translation) is kept
    assert keeps(translation, text) is kept


def test_where_numbers_may_change_the_sign_for_one_may():
    assert keeps("# 8 of the #team", "Number 8 of the #team", numbers=False)
    assert not keeps("# 8 of the #team", "Number 8 of the #team")
    assert not keeps("# 8 of the #team", "# 8 of the team", numbers=False)


@pytest.mark.parametrize("text", ["„https://a.b/c“", "“https://a.b/c”", "https://a.b/c？", "https://a.b/c；"])
def test_marks_behind_an_address_may_change(text):
    assert keeps(text, "See https://a.b/c!")


def losing(text):
    """Translate to capitals, without what is in braces."""
    return re.sub(r"\{.*?\}", "", text).upper() + "." * (text == "See")


def without_numbers(text):
    return losing(re.sub(r"\d+", "", text))


def test_lost_ones_are_put_between_the_translated_parts():
    translator = MadeUp(without_numbers)
    found = translator.texts(["A dog. See {x}, it runs!", "{x}", "A dog."], "en")
    assert found == ["A DOG. SEE {x}, IT RUNS!", "{x}", "A DOG."]
    stood_in = ["See 18, it runs!", "See 13, it runs!"]
    assert translator.asked == ["A dog.", "See {x}, it runs!", *stood_in, "See", "it runs"]


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("我有3只狗", "I have 3 dogs"),
        ("我有{x}，3只狗", "I have {x}，3 dogs"),
        ("3只狗。", "3 dogs。"),
        ("{x}s dogs", "{x}s dogs"),
    ],
)
def test_parts_of_a_language_without_spaces_get_them(sentence, expected):
    """Of a language with spaces, a part stays as close to its placeholder as it was."""
    translations = {"我有": "I have", "只狗": "dogs", "s dogs": "s dogs"}
    translator = MadeUp(lambda text: translations.get(text, "Three dogs."))
    assert translator.texts([sentence]) == [expected]


def test_elements_around_lost_ones_stay():
    (text,) = texts(["Press ", Inline("b", ["{x} and"]), " go."])
    (found,) = MadeUp(without_numbers, in_order).texts([text], "en")
    assert whole(pieces_of(found)) == "PRESS {x} AND GO."
    assert pieces_of(found)[1].pieces == ["{x} AND"]


@pytest.mark.parametrize("text", ["写信给a@b.org", "见https://a.b/c。好", "第18章"])
def test_words_beside_a_placeholder_without_a_space_are_words(text):
    assert has_words(text)


def test_numbers_stand_in_for_lost_ones():
    """The model copies numbers, but not what it has no characters for: the sentence remains whole."""
    translator = MadeUp(losing)
    found = translator.texts(["See {x} of {y} and 18 dogs.", "A {y} dog."], "en")
    assert found == ["SEE {x} OF {y} AND 18 DOGS.", "A {y} DOG."]
    assert translator.asked[2:] == ["See 13 of 19 and 18 dogs.", "A 18 dog."]


def test_a_number_in_chinese_words_does_not_stand_in():
    """The translation may have it in digits, without the placeholder."""
    translations = {"十八只{x}狗": "18 DOGS", "十八只18狗": "18 DOGS", "十八只13狗": "18 13 DOGS"}
    assert MadeUp(translations.get).texts(["十八只{x}狗"], "zh") == ["18 {x} DOGS"]


@pytest.mark.parametrize(
    ("sentence", "translations", "expected"),
    [
        ("A {x} dog.", {"A 18 dog.": "A DOG."}, "A {x} DOG."),
        ("A {x} dog.", {"A 18 dog.": "18 OF 18 DOGS."}, "A {x} DOG."),
        ("A {x} dog.", {"A 18 dog.": "AN 18-YEAR-OLD."}, "A {x} DOG."),
        ("A {x} dog.", {"A 18 dog.": "18 DOGS, 18JÄHRIG."}, "A {x} DOG."),
        ("A {x} dog.", {"A 18 dog.": "有18个人。"}, "有{x}个人。"),
        ("A {x}-year-old.", {"A 18-year-old.": "18-JÄHRIGE."}, "{x}-JÄHRIGE."),
        ("A 7 dog.", {"A 7 dog.": "SEVEN DOGS."}, "A 7 DOG."),
        ("A {x} dog.", {"A 18 dog.": "A DOG.", "A 13 dog.": "A DOG.", "dog": "PET"}, "A {x} PET."),
    ],
)
def test_a_stand_in_comes_through_once_as_a_word_of_its_own(sentence, translations, expected):
    """Otherwise another is tried, and then the words around it are translated by themselves."""
    translator = MadeUp(lambda text: translations.get(text) or losing(text))
    assert translator.texts([sentence], "en") == [expected]


@pytest.mark.parametrize(
    ("translations", "expected"),
    [
        ({"A 18 dog, 5 cats.": "A 18 DOG, FIVE CATS."}, "A {x} DOG, FIVE CATS."),
        ({"A 18 dog, 5 cats.": "A 18 DOG, 18-5 CATS."}, "A {x} DOG, 5 CATS."),
        ({"A 18 dog, 5 cats.": "A DOG.", "A 13 dog, 19 cats.": "A 13 DOG, NINETEEN."}, "A {x} DOG, 5 CATS."),
    ],
)
def test_where_numbers_may_change_no_stand_in_is_left(translations, expected):
    translator = MadeUp(lambda text: translations.get(text) or losing(text))
    steps, answer = translating(["A {x} dog, 5 cats."], ("en", "de"), translator, keep=False), None
    while (asked := next_step(steps, answer))[0] != DONE:
        answer = translator.translate(asked[1])
    assert asked[1] == [expected]


def test_a_text_whose_parts_bring_new_ones_has_no_translation():
    assert MadeUp(lambda text: "7").texts(["A dog {x}", "A dog. A {x}."]) == ["", ""]


def test_a_sentence_that_is_too_long_leaves_its_text():
    """It is not asked for, not even in parts; `skip_long=False` leaves it to what translates."""
    texts = ["A dog. A very long {x} sentence.", "A long sentence here.", "A {x} cat."]
    translator = MadeUp(losing, most=3)
    assert translator.texts(texts, "en") == ["", "", "A {x} CAT."]
    assert not any("long" in sentence for sentence in translator.asked)
    steps = translating(texts[1:2], ("en", "de"), translator, skip_long=False)
    assert run_steps(steps, translator.translate, translator, ("en", "de")) == ["A LONG SENTENCE HERE."]


def test_texts_that_lost_placeholders_are_translated_again():
    """Line by line. Numbers may change; of a text that loses them even so, what was found stays."""
    translator = MadeUp(lambda text: "{z}" if "bad" in text else without_numbers(losing(text)))
    texts = ["A {x} dog.\r\nA cat.", "3 cats", "A bad {x} dog. A {y} dog."]
    found = ["A DOG. A CAT.", "THREE CATS", "A BAD DOG. A DOG."]
    in_parts = []
    steps = keeping_placeholders(texts, found, ("en", "de"), translator, in_parts)
    new = run_steps(steps, translator.translate, translator, ("en", "de"))
    assert new == ["A {x} DOG.\r\nA CAT.", *found[1:]]
    assert in_parts == ["A {x} dog."] and "3 cats" not in translator.asked


def test_texts_that_are_translated_again_may_have_numbers_in_words():
    """Their parts would be worse."""
    translator = MadeUp(lambda text: losing(text).replace("5", "FIVE"))
    steps = keeping_placeholders(["A {x} dog, 5 cats."], ["A DOG."], ("en", "de"), translator)
    assert run_steps(steps, translator.translate, translator, ("en", "de")) == ["A {x} DOG, FIVE CATS."]


def test_a_text_that_begins_with_its_target_language_has_the_translation_found():
    """Of its sentences and parts, only the first would be translated to it."""
    translator = MadeUp(losing)
    translator.codes_in_text = ["fra", "deu"]
    steps = keeping_placeholders([">>fra<< See {x}. A dog."], ["VOIR."], ("en", None), translator)
    assert run_steps(steps, translator.translate, translator, ("en", None)) == ["VOIR."]
    assert translator.asked == []
