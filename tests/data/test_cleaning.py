"""Rows not worth training on, against counts by hand and `collections.Counter`."""

from collections import Counter
from itertools import chain

import numpy as np
import pytest
from message_of import message_of

from kzoo.data import open_corpus, open_files
from kzoo.data.cleaning import EQUAL, doubtful_rows, kept_rows, odd_rows, rows_table
from kzoo.data.own_files import stream_pairs
from kzoo.data.scripts import in_another_script, scripts_of

ENGLISH = ["a dog", "a cat", "a dog ", " ", "Oslo", "a dog", "one two three four", "a hen"]
GERMAN = ["ein Hund", "eine Katze", "ein Hund", "y", "Oslo", "Dogge", "eins " * 20, "x" * 8]


def rows_of(found):
    return [kind.rows.tolist() for kind in found]


def test_each_row_is_of_the_first_kind_that_fits():
    found = odd_rows([ENGLISH, GERMAN])
    assert rows_of(found) == [[3], [2], [4], [6]]
    assert [kind.left_out.tolist() for kind in found] == rows_of(found)  # one in eight is more than the share
    assert kept_rows(found, len(ENGLISH)).tolist() == [0, 1, 5, 7]


def test_copies_are_those_that_a_counter_finds():
    sides = open_corpus("scenes").pairs("train", "en", "de")
    pairs = Counter(zip(*sides, strict=True))
    copies = odd_rows(sides)[1].rows
    assert len(copies) == sum(pairs.values()) - len(pairs) > 0
    kept = kept_rows(odd_rows(sides), len(sides[0]))
    assert len(kept) == len(pairs)
    assert [sides[0][row] for row in kept] == [english for english, _ in pairs]


def test_few_equal_sides_stay_many_do_not():
    numbers = [f"number {n}" for n in range(1000)]
    for equal in (5, 10, 200):
        others = [f"Nummer {n}" for n in range(equal, 1000)]
        (found,) = (kind for kind in odd_rows([numbers, numbers[:equal] + others]) if len(kind.rows))
        assert len(found.rows) == equal
        assert len(found.left_out) == max(0, equal - EQUAL * 1000)


@pytest.mark.parametrize(
    "short, long, odd",
    [
        ("OK", "D'accord", False),  # 2 and 8 characters
        ("OK", "D'accord, je viens.", True),
        ("Danube steamboat shipping company", "Donaudampfschifffahrtsgesellschaft", False),  # 4 words and 1
        ("x" * 20, "x" * 59, False),
        ("x" * 20, "y" * 61, True),
    ],
)
def test_lengths_are_compared_in_characters(short, long, odd):
    others = [f"line {n}" for n in range(20)], [f"Satz {n}" for n in range(20)]
    for sides in ([short], [long]), ([long], [short]):
        found = odd_rows([side + rest for side, rest in zip(sides, others, strict=True)])
        assert found[3].rows.tolist() == [0] * odd


def test_lengths_are_relative_to_those_of_the_language():
    chinese = ["我们明天去北京看长城。", "你好吗？", "今天天气很好，我们出去玩吧。"]
    english = ["Tomorrow we are going to Beijing to see the Great Wall.", "How are you today?", "y" * 60]
    assert all(3 * len(c) < len(e) for c, e in zip(chinese, english, strict=True))
    assert rows_of(odd_rows([chinese, english])) == [[]] * 4


def test_three_languages_have_rows_in_common():
    sides = [ENGLISH, GERMAN, [*ENGLISH[:7], ""]]
    assert rows_of(odd_rows(sides)) == [[3, 7], [2], [4], [6]]


def test_another_script_is_one_that_most_letters_are_in():
    wrong = in_another_script("ru")
    assert not wrong("Я купил iPhone.") and not wrong("2026: 5 %") and not wrong("")
    assert wrong("It rains.") and not in_another_script("xx")("It rains.")
    assert not in_another_script("ja")("コーヒーを飲む") and in_another_script("ja")("커피")
    assert not in_another_script("uk-Latn")("Kyiv") and in_another_script("uk-Latn")("Київ")
    assert not in_another_script("ru-Abcd")("Kyiv")  # no script
    assert scripts_of("deu") == scripts_of("pt_BR") == ["Latn"] and scripts_of("zh-Hant") == ["Hani"]
    scenes = open_corpus("scenes")
    for language in scenes.languages:
        assert not any(map(in_another_script(language), scenes.sentences("val", language)))


def test_doubtful_rows_are_in_another_script_or_held_out():
    held_out = [(["a hen", ""], ["ein Huhn", "eine Katze "])]
    found = doubtful_rows([[*ENGLISH, "кот"], [*GERMAN, "Kater"]], ("en", "de"), held_out)
    assert rows_of(found) == [[8], [1, 7]]
    assert not any(len(kind.left_out) for kind in found)


def test_a_table_names_a_row_of_each_kind():
    sides = [ENGLISH, GERMAN]
    table = rows_table(sides, odd_rows(sides), clean=False).splitlines()
    assert len(table) == 1 + 4 + 1 and "8 training rows" in table[0]
    assert "row 3: a dog | ein Hund" in table[2] and "clean = true" in table[5]
    assert "\n" not in rows_table([["a"], ["b"]], [], clean=True)


def test_files_are_cleaned_before_rows_are_held_out(tmp_path):
    files = [tmp_path / "t.en", tmp_path / "t.de"]
    english = [f"{n} dogs" for n in range(50)]
    german = [f"{n} Hunde" for n in range(50)]
    for file, side in zip(files, (english, german), strict=True):
        file.write_text("\n".join([*side[:10], *side, " "]) + "\n")
    corpus = open_files(train=files, val=20, languages=("en", "de"), clean=True)
    splits = (zip(*corpus.pairs(split, "en", "de"), strict=True) for split in corpus.splits)
    pairs = list(chain.from_iterable(splits))
    assert Counter(pairs) == Counter(zip(english, german, strict=True))
    assert len(corpus.sentences("val", "en")) == 20
    numbered = list(stream_pairs(files, ("en", "de")))
    for split in ("train", "val"):
        text = corpus.read(split, "en")
        assert [numbered[row][0] for row in text.rows] == text.sentences
    without = open_files(train=files, languages=("en", "de"), clean=True)
    assert without.pairs("train", "en", "de") == (english, german)
    assert len(open_files(train=files).sentences("train", "en")) == 61


def test_a_text_without_a_row_worth_training_on_is_refused(tmp_path):
    files = [tmp_path / "t.en", tmp_path / "t.de"]
    for file in files:
        file.write_text("Oslo\nBergen\n")
    assert "clean" in message_of(open_files(train=files, clean=True).sentences, "train", "en")
    none = kept_rows(odd_rows([[], []]), 0)
    assert none.dtype == np.int64 and not len(none)
