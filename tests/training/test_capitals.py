"""Rows in capitals and in title case: which are added to a training text, and that a run takes them."""

import dataclasses
from collections import Counter

import pytest
from message_of import message_of
from test_choice import chosen_for
from test_own_text import BASE, MODEL, TEXT, write

from kzoo.data import open_corpus
from kzoo.training import Recipe
from kzoo.training.capitals import LONGEST, rows_in_capitals, with_capitals
from kzoo.training.recipe_checks import check_recipe
from kzoo.training.tasks import recipe_task

ALWAYS = 1 - 1e-9


@pytest.mark.parametrize(
    ("row", "languages", "capitals", "title"),
    [
        (("A dog.", "Ein Hund."), ("en", "de"), ("A DOG.", "EIN HUND."), ("A Dog.", "Ein Hund.")),
        (("i it", "is it"), ("tr", "en"), ("İ İT", "IS IT"), ("İ İt", "Is It")),
        (("a dog", "一只狗"), ("en", "zh"), ("A DOG", "一只狗"), ("A Dog", "一只狗")),
    ],
)
def test_a_row_is_added_twice(row, languages, capitals, title):
    assert list(rows_in_capitals([row], languages, ALWAYS, 1)) == [capitals, title]


@pytest.mark.parametrize("row", [("我有iPhone", "I have one"), ("12", "12"), ("a" * (LONGEST + 1), "a")])
def test_rows_that_are_not_added(row):
    assert not list(rows_in_capitals([row], ("zh", "en"), ALWAYS, 1))


def test_each_language_of_several_is_a_source():
    rows = [("a dog", "ein Hund", "un chien"), ("a dog", "ein Hund", "一只狗")]
    assert len(list(rows_in_capitals(rows, ("en", "de", "fr"), ALWAYS, 1, several=True))) == 2


def test_the_share_is_that_of_the_rows_and_the_seed_chooses_them():
    sides = [list(side) for side in zip(*(TEXT * 100), strict=True)]
    first, again, other = (
        with_capitals(sides, ("en", "de"), 0.05, seed)[0][len(sides[0]) :] for seed in (1, 1, 2)
    )
    assert first == again != other
    assert len(first) == pytest.approx(2 * 0.05 * len(sides[0]), rel=0.15)


def test_training_has_the_rows_and_validation_does_not(tmp_path):
    values = BASE | {"train": write(tmp_path, TEXT), "val": write(tmp_path, TEXT[:9], "val")}
    recipe = make(values)
    task, plain = recipe_task(dataclasses.replace(recipe, capitals=0.5)), recipe_task(recipe)
    assert task.validation == plain.validation
    added = Counter(zip(*task.sides, strict=True)) - Counter(zip(*plain.sides, strict=True))
    assert {"DOGS", "Dogs", "A MAN SLEEPS", "A Man Sleeps"} <= {source for source, _ in added}
    assert ("DOGS", "HUNDE") in added


def test_an_added_row_that_is_too_long_is_left_out(tmp_path):
    """In capitals, a sentence may have more subwords than before."""
    longest = ("a dog of a man of a dog of a man of a dog", "ein Hund")
    values = BASE | {"train": write(tmp_path, [*TEXT, longest] * 20), "val": write(tmp_path, TEXT, "val")}
    values |= {"model": MODEL | {"max_length": 24}, "vocabulary_size": 60, "capitals": 0.05}
    task = recipe_task(make(values))
    task.begin(tmp_path)
    batches = task.prepare(tmp_path).batches
    rows = sum((batches[i][0]["source"] != 0).any(axis=1).sum() for i in range(len(batches)))
    assert len(task.sides[0]) > rows >= 20 * len([*TEXT, longest])


def make(values):
    return check_recipe(Recipe(**{"model": MODEL, "vocabulary_size": 50, "tokens": 64, **values}))


def test_own_text_takes_them_where_the_script_has_case(tmp_path):
    scenes = open_corpus("scenes")
    english, german, chinese = (scenes.sentences("train", code)[:200] for code in ("en", "de", "zh"))
    files = write(tmp_path, list(zip(english, german, strict=True)))
    assert chosen_for(files)["capitals"].value == 0.05
    assert "capitals" not in chosen_for(files, "text=lowercased")
    assert "capitals" not in chosen_for(files, "minutes=0.5")
    assert "capitals" not in chosen_for(files, "images=features")
    (tmp_path / "t.zh").write_text("".join(f"{line}\n" for line in chinese), "utf-8")
    assert "capitals" not in chosen_for([str(tmp_path / "t.zh"), files[1]])


def test_rows_in_capitals_have_no_picture():
    recipe = Recipe("image_text_tiny", "scenes", "en", "de", capitals=0.1)
    assert "capitals" in message_of(check_recipe, recipe)
