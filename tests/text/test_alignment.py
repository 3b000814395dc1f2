"""Words that are aligned by a given attention, in texts that subwords spell in other ways."""

import numpy as np
import pytest

from kzoo.text.alignment import Alignment


def found(text, translation, source, target, links, part, language="de"):
    """Return the words that are aligned with part of a text; `links` has each target subword's source."""
    weights = np.full((len(target), len(source)), 0.1)
    weights[np.arange(len(target)), links] = 1
    alignment = Alignment([(text, translation, (source, target, weights))], language)
    start = text.index(part)
    _, first, last = alignment.words_of(start, start + len(part), np.ones(len(alignment.words), bool))
    return translation[alignment.words[first][0] : alignment.words[last - 1][1]]


# Runs of unknown characters, of any length, are one token each.
UNKNOWN = (
    "{{x}} has a big dog {0}",
    "{{x}} hat Hund {0} groß",
    ["▁", "<unk>", "x", "<unk>", "▁has", "▁a", "▁big", "▁dog", "▁", "<unk>", "0", "<unk>"],
    ["▁", "<unk>", "x", "<unk>", "▁hat", "▁Hund", "▁", "<unk>", "0", "<unk>", "▁groß"],
    [0, 1, 2, 3, 4, 7, 8, 9, 10, 11, 6],
)
QUOTED = ('"Yes", he', '"Ja", er', ['▁"', "Yes", '",', "▁he"], ['▁"', "Ja", '",', "▁er"], range(4))
CHINESE = (
    "A dog.",
    "\u4e00\u53ea\u72d7\u3002",
    ["▁A", "▁dog", "."],
    ["\u4e00\u53ea", "\u72d7", "\u3002"],
    range(3),
)


@pytest.mark.parametrize(
    ("case", "part", "expected"),
    [
        (("A big dog", "Ein Hund, groß", ["▁A", "▁b", "ig", "▁dog"], ["▁Ein", "▁Hu", "nd", ",", "▁groß"],
          [0, 3, 3, 3, 1]), "big", "groß"),
        # What a part begins and ends with.
        (QUOTED, '"Yes"', '"Ja"'),
        (QUOTED, "Yes", "Ja"),
        (UNKNOWN, "big", "groß"),
        (UNKNOWN, "dog", "Hund"),
        (UNKNOWN, "has", "hat"),
        # A word between two that belong to the part does, too.
        (("I sit down", "ich setze mich hin", ["▁I", "▁sit", "▁down"], ["▁ich", "▁setze", "▁mich", "▁hin"],
          [0, 1, 1, 2]), "sit down", "setze mich hin"),
        # The token of a language; normalization.
        (("A dog", "un chien", [">>fra<<", "▁A", "▁dog"], ["▁un", "▁chien"], [1, 2]), "dog", "chien"),
        (("A dog… in", "Hund… in", ["▁A", "▁dog", "...", "▁in"], ["▁Hund", "...", "▁in"], [1, 2, 3]),
         "in", "in"),
        (("A DOG", "ein Hund", ["▁a", "▁dog"], ["▁ein", "▁Hund"], [0, 1]), "DOG", "Hund"),
        # A language without spaces has no edges of words.
        (CHINESE, "A", "\u4e00\u53ea"),
    ],
)  # fmt: skip
def test_words_of_a_part(case, part, expected):
    assert found(*case, part, "zh" if expected > "\u4e00" else "de") == expected


def test_sentences_one_after_the_other():
    one = np.eye(2) + 0.1
    rows = [
        ("A dog. ", "Ein Hund. ", (["▁A", "▁dog."], ["▁Ein", "▁Hund."], one)),
        ("{x} ", "{x} ", None),
        ("A cat.", "Die Katze.", (["▁A", "▁cat."], ["▁Die", "▁Katze."], one)),
    ]
    alignment = Alignment(rows, "de")
    text, free = "A dog. {x} A cat.", np.ones(len(alignment.words), bool)
    for part, expected in {
        "dog": "Hund",
        "cat.": "Katze.",
        "{x} A": "{x} Die",
        "dog. {x}": "Hund. {x}",
    }.items():
        start = text.index(part)
        _, first, last = alignment.words_of(start, start + len(part), free)
        assert alignment.translation[alignment.words[first][0] : alignment.words[last - 1][1]] == expected


def test_words_that_are_not_free_are_left_out():
    alignment = Alignment([("a b", "c d", (["▁a", "▁b"], ["▁c", "▁d"], np.eye(2)))], "de")
    assert alignment.words_of(0, 1, [False, True])[1:] == (1, 2)
    assert alignment.words_of(0, 1, [False, False]) is None
