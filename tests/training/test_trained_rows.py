"""A run knows which rows it was trained on, and scores on them are marked."""

import json

import pytest
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo import cli
from kzoo.data import open_files
from kzoo.decoding import TextTranslator
from kzoo.training import trained_rows
from kzoo.training.trained_rows import (
    ROWS,
    copy_rows,
    count_trained_rows,
    record_rows,
    recorded,
)

TEXT = {
    "en": ["a dog", "a cat", "a hen"],
    "de": ["ein Hund", "eine Katze", "ein Huhn"],
    "fr": ["un chien", "un chat", "une poule"],
}


def opened(folder, *languages, **texts):
    """Return a corpus with the test split of these texts."""
    paths = [folder / f"test.{name}" for name in texts]
    for path, lines in zip(paths, texts.values(), strict=True):
        path.write_text("".join(f"{line}\n" for line in lines))
    return open_files(test=paths, languages=languages or ("en", "de"))


@pytest.fixture
def preset(tmp_path):
    """The preset of a run on two languages."""
    (tmp_path / "run").mkdir()
    record_rows(tmp_path / "run" / ROWS, [TEXT["en"], TEXT["de"]])
    return tmp_path / "run" / "preset"


def test_rows_count_in_both_directions_and_without_spaces_at_the_ends(preset, tmp_path, monkeypatch):
    monkeypatch.setattr(trained_rows, "BLOCK", 2)
    data = opened(tmp_path, en=["a dog ", "a cow", "a hen"], de=["ein Hund", "eine Kuh", " ein Huhn"])
    assert count_trained_rows(preset, data, "test", [("en", "de")]) == 2
    assert count_trained_rows(preset, data, "test", [("de", "en")]) == 2
    assert count_trained_rows(preset, data, "test", [("en", "de"), ("de", "en")]) == 2


def test_other_pairs_of_known_sentences_do_not_count(preset, tmp_path):
    data = opened(tmp_path, en=["a dog", "a cat"], de=["ein Huhn", "ein Kater"])
    assert count_trained_rows(preset, data, "test", [("en", "de")]) == 0


def test_a_further_reference_counts(preset, tmp_path):
    data = opened(
        tmp_path, en=["a dog", "a cat"], de=["der Hund", "die Katze"], more=["ein Hund", "die Mieze"]
    )
    assert count_trained_rows(preset, data, "test", [("en", "de")]) == 1


def test_any_two_languages_of_a_row_count(tmp_path):
    record_rows(tmp_path / ROWS, list(TEXT.values()))
    data = opened(tmp_path, "de", "fr", de=TEXT["de"], fr=[*TEXT["fr"][:2], "un coq"])
    assert count_trained_rows(tmp_path / "preset", data, "test", [("de", "fr")]) == 2


def test_of_a_preset_outside_its_run_nothing_is_known(preset, tmp_path):
    data = opened(tmp_path, en=TEXT["en"], de=TEXT["de"])
    assert count_trained_rows(tmp_path / "moved", data, "test", [("en", "de")]) is None


def test_what_a_fine_tuned_preset_began_with_counts(preset, tmp_path):
    run = tmp_path / "tuned"
    record_rows(run / ROWS, [["a cow"], ["eine Kuh"]])
    copy_rows(trained_rows.recorded_in(preset), run / "start" / ROWS)
    data = opened(tmp_path, en=["a cow", "a dog", "a fox"], de=["eine Kuh", "ein Hund", "ein Fuchs"])
    assert count_trained_rows(run / "preset", data, "test", [("en", "de")]) == 2


def test_a_text_that_is_streamed_has_the_same_digests(tmp_path):
    pairs = [(f"a dog {row}", f"ein Hund {row}") for row in range(trained_rows.BLOCK // 40)]
    assert list(recorded(tmp_path / ROWS, iter(pairs))) == pairs
    record_rows(tmp_path / "at once", list(zip(*pairs, strict=True)))
    assert (tmp_path / ROWS).read_bytes() == (tmp_path / "at once").read_bytes()


class Copier(TextTranslator):
    """A model that translates English to German by copying."""

    engine, source_tokenizer = "keras", None
    source_language, target_language = "en", "de"

    def translate(self, texts, **_):
        return list(texts)


@pytest.fixture
def copier(commands_load):
    commands_load(lambda _: Copier())


def lines(told):
    """Return the warnings about trained rows, up to the colon."""
    texts = [str(warning.message) for warning in told]
    return [text.partition(":")[0] for text in texts if "was trained on" in text]


@pytest.mark.usefixtures("copier")
def test_evaluate_and_report_say_how_many_rows_a_run_was_trained_on(preset, tmp_path):
    small_preset(preset)
    opened(tmp_path, en=["a dog", "a cow", "a hen"], de=["ein Hund", "eine Kuh", "ein Huhn"])
    files = [str(tmp_path / f"test.{language}") for language in ("en", "de")]
    scores, page = tmp_path / "scores.json", tmp_path / "page.html"
    with pytest.warns(UserWarning) as told:
        done = CliRunner().invoke(cli.app, ["evaluate", str(preset), "--files", *files, "-o", str(scores)])
    assert done.exit_code == 0
    (line,) = lines(told)
    assert str(preset) in line and "2 of the 3" in line
    assert json.loads(scores.read_text())["trained_rows"] == {"test": 2}
    other = small_preset(tmp_path / "other").folder
    with pytest.warns(UserWarning) as told:
        done = CliRunner().invoke(cli.app, ["report", str(page), str(preset), str(other), "--files", *files])
    assert done.exit_code == 0
    (line,) = lines(told)
    assert line.startswith("run ") and "2 of the 3" in line
    assert "run was trained on 2 of them" in page.read_text()
    assert (
        CliRunner().invoke(cli.app, ["evaluate", str(other), "--files", *files, "-o", str(scores)]).exit_code
        == 0
    )
    assert "trained_rows" not in json.loads(scores.read_text())
