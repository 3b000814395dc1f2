"""Truecasing: what it learns against a count by hand, and what it does to each kind of word."""

import re
from collections import Counter, defaultdict

import pytest

from kzoo.scenes import scenes
from kzoo.text import Truecaser, learn_forms, moses_tokens

TEXT = [
    "We saw the US team in Rome .",
    "Tell us : The us and US of it , said the man .",
    '" He saw the man ! " The man saw us .',
    "The end . Anna saw the man in Rome",
]


def counted(sentences):
    """The forms of words that stand within sentences: not after an end, nor after quotes that follow one."""
    counts = defaultdict(Counter)
    for sentence in sentences:
        for part in re.split(r" (?=[.:?!](?: |$))", sentence):  # each part but the first begins with an end
            words = [word for word in part.split() if word not in {*".:?!", *"([\"'"}]
            for word in words[1:]:
                if any(letter.lower() != letter.upper() for letter in word):
                    counts[word.lower()][word] += 1
    return counts


def test_the_forms_are_those_counted_within_sentences():
    german = [moses_tokens(scene.sentence("de"), "de") for scene in scenes("train")[:300]]
    for text in (TEXT, german):
        learned, expected = learn_forms(text), counted(text)
        assert {forms[0].lower(): set(forms) for forms in learned} == {w: set(c) for w, c in expected.items()}
        for forms in learned:
            numbers = [expected[forms[0].lower()][form] for form in forms]
            assert numbers == sorted(numbers, reverse=True)


@pytest.mark.parametrize(
    ("written", "truecased"),
    [
        ("The man saw Anna .", "the man saw Anna ."),  # never seen within a sentence: as it stands
        ("In Rome ? The team .", "in Rome ? the team ."),
        ('" The man in rome', '" the man in Rome'),
        ("Tell US of us", "Tell US of us"),  # both are known
        ("IN THE END", "in the END"),  # "end" was never seen
        ("STOP THE BUS IN ROME !", "STOP the BUS in Rome !"),
        ("Zürich is 3 km", "Zürich is 3 km"),
        ("", ""),
    ],
)
def test_words_get_the_form_that_they_have_within_sentences(written, truecased):
    assert Truecaser(learn_forms(TEXT[:3]))(written) == truecased


def test_at_the_beginning_the_most_frequent_form_is_taken():
    assert Truecaser([["us", "US"]])("Us .") == "us ."
    assert Truecaser([["US", "us"]])("Us .") == "US ."


def test_without_text_nothing_changes():
    assert learn_forms([]) == learn_forms(["", "One"]) == []
    assert Truecaser([])("The MAN .") == "The MAN ."
