"""Terms in sentences, and their translations in given translations with given alignments."""

import numpy as np
import pytest
from message_of import message_of

from kzoo.text.glossary import Glossary

TERMS = {
    "dog": "Köter",
    "Guide dog": "Blindenhund",
    "C++": "C++",
    "bank": "Ufer",
    "boat": "Kahn",
    "İstanbul": "Istanbul",
}
ENGLISH = Glossary(TERMS, ("en", "de"))


@pytest.mark.parametrize(
    ("sentence", "found"),
    [
        ("A dog, a DOG.", ["dog", "DOG"]),
        ("A guide dog sees dogs.", ["guide dog"]),
        ("Banks embank C++; C+++", ["C++", "C++"]),
        ("In İstanbul, in istanbul", ["İstanbul", "istanbul"]),
        ("", []),
    ],
)
def test_terms_are_whole_words_in_any_case(sentence, found):
    assert [sentence[start:stop] for start, stop, _ in ENGLISH.occurrences(sentence)] == found


def test_a_language_without_spaces_has_no_edges_of_words():
    glossary = Glossary({"\u72d7": "dog", "\u5bfc\u76f2\u72d7": "guide dog"}, ("zh", "en"))
    found = glossary.occurrences("\u4e00\u53ea\u5bfc\u76f2\u72d7\u548c\u72d7")
    assert [one.translation for one in found] == ["guide dog", "dog"]


@pytest.mark.parametrize(
    ("translation", "missing"),
    [("Ein Köter und ein Hund.", 1), ("köter, Köters", 0), ("Köterhund und Köter", 1), ("Hunde", 2)],
)
def test_a_translation_may_have_an_ending(translation, missing):
    assert ENGLISH.missing(ENGLISH.occurrences("A dog and a dog."), translation) == missing


def applied(sentence, translation, links, glossary=ENGLISH):
    """Return the translation with terms; `links` has the place of each of its words' source."""
    source, target = sentence.split(), translation.split()
    weights = np.full((len(target), len(source)), 0.01)
    weights[np.arange(len(target)), links] = 1
    attention = [f"▁{word}" for word in source], [f"▁{word}" for word in target], weights
    return glossary.applied(sentence, glossary.occurrences(sentence), translation, attention)


@pytest.mark.parametrize(
    ("sentence", "translation", "links", "expected"),
    [
        ("Today a dog runs.", "Ein großer Hund rennt heute.", [1, 2, 2, 3, 0], "Ein Köter rennt heute."),
        ("dog sleeps", "Hund schläft", [0, 1], "Köter schläft"),
        # One of two is there already.
        ("a dog and a dog", "ein Köter und ein Hund", range(5), "ein Köter und ein Köter"),
        ("a dog and a dog", "ein Hund und ein Köter", range(5), "ein Köter und ein Köter"),
        ("a dog in a boat", "ein Hund in einem Boot", range(5), "ein Köter in einem Kahn"),
        # What is there is not replaced by another term.
        ("the boat , dog", "der Kahn , Hund", [0, 1, 2, 1], "der Kahn , Köter"),
    ],
)
def test_aligned_words_are_replaced(sentence, translation, links, expected):
    assert applied(sentence, translation, links) == expected


def test_a_sentence_s_first_word_keeps_its_capital():
    glossary = Glossary({"perro": "doggie"}, ("es", "en"))
    assert applied("Perro y perro", "Dog and dog", range(3), glossary) == "Doggie and doggie"
    phones = Glossary({"teléfono": "iPhone"}, ("es", "en"))
    assert applied("Teléfono y teléfono", "Phone and phone", range(3), phones) == "iPhone and iPhone"


def test_without_attention_the_translation_stays():
    assert ENGLISH.applied("A dog.", ENGLISH.occurrences("A dog."), "Ein Hund.", None) == "Ein Hund."


@pytest.mark.parametrize(
    ("terms", "word"),
    [({"": "a"}, "''"), ({"dog": " "}, "'dog'"), ({"dog": None}, "'dog'"), ([("dog", "Hund")], "[('dog',")],
)
def test_bad_terms_are_named(terms, word):
    assert word in message_of(Glossary, terms, ("en", "de"))
