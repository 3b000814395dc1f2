"""METEOR: the real program where it is installed; else how it is called and what its absence says."""

import stat

import pytest

from kzoo.errors import UserError
from kzoo.evaluation import scores as module


@pytest.fixture
def java(tmp_path, monkeypatch):
    """A stand-in for Java that keeps its arguments and prints what METEOR prints."""
    program = tmp_path / "java"
    program.write_text(
        f'#!/bin/sh\necho "$@" > {tmp_path}/arguments\ncat "$4" > {tmp_path}/seen\n'
        'echo "Fragmentation penalty: 0.1"\necho "Final score:            0.4321"\n'
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    jar = tmp_path / "pycocoevalcap" / "meteor" / "meteor-1.5.jar"
    jar.parent.mkdir(parents=True)
    jar.touch()
    (tmp_path / "pycocoevalcap" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def test_reads_the_final_score(java):
    assert module.meteor_score(["ein  Hund\n", "zwei"], ["ein Hund", "drei"], "de") == pytest.approx(43.21)
    assert (java / "seen").read_text() == "ein Hund\nzwei\n"
    assert (java / "arguments").read_text().split()[-6:] == ["-m", "exact", "stem", "-l", "de", "-norm"]
    module.meteor_score(["ein Hund"], ["ein Hund"], "deu")
    assert (java / "arguments").read_text().split()[-6:] == ["-m", "exact", "stem", "-l", "de", "-norm"]
    module.meteor_score(["两只狗"], ["一只狗"], "zh")
    assert (java / "arguments").read_text().split()[-5:] == ["-m", "exact", "-l", "other", "-lower"]
    assert (java / "seen").read_text() == "两 只 狗\n"


def test_a_sentence_s_references_follow_each_other(java):
    (java / "java").write_text((java / "java").read_text().replace("$4", "$5"))
    module.meteor_score(["ein Hund", "zwei"], ["ein Hund", "drei"], "de", [["Hund", "zwei"]])
    assert (java / "seen").read_text() == "ein Hund\nHund\ndrei\nzwei\n"
    assert "-r 2" in (java / "arguments").read_text()


@pytest.mark.usefixtures("java")
def test_translations_are_scored_with_it():
    assert module.score_translations("test", ["a"], ["b"], "de").meteor == pytest.approx(43.21)


def test_a_failing_run_is_one_line(java):
    (java / "java").write_text("#!/bin/sh\necho Error: no memory >&2\necho at Meteor.main >&2\nexit 3\n")
    with pytest.raises(UserError, match="METEOR.* memory$"):
        module.meteor_score(["a"], ["a"], "de")
    with pytest.warns(UserWarning, match="METEOR.* memory"):
        scores = module.score_translations("test", ["a b c d"], ["a b c d"], "de")
    assert scores.meteor is None and scores.bleu == pytest.approx(100)


def test_without_the_program_it_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="Java"):
        module.meteor_score(["a"], ["a"], "de")


@pytest.mark.skipif(module.find_meteor() is None, reason="METEOR's jar or Java is not installed")
@pytest.mark.parametrize("language", [*module.MATCHING, "zh", "id"])
def test_equal_sentences_score_highest(language):
    same = module.meteor_score(["A dog runs fast."], ["A dog runs fast."], language)
    assert module.meteor_score(["a dog runs fast."], ["A dog runs fast."], language) == same
    other = module.meteor_score(["The cat sat."], ["A dog runs fast."], language)
    assert same > 99 > other
    both = module.meteor_score(["The cat sat."], ["A dog runs fast."], language, [["The cat sat."]])
    assert both > max(99, other)
