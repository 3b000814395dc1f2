"""Ambiguous words: references are all right, those of the other senses all wrong, chance is a half."""

from dataclasses import replace

import pytest
from message_of import message_of

from kzoo.evaluation import score_ambiguous_words
from kzoo.evaluation.ambiguous_words import score_scenes
from kzoo.scenes import AmbiguousWord, scenes
from kzoo.scenes.scene import _other


def twin(scene):
    both = [place for place in ("subject", "object") if getattr(scene, place)]
    others = {place: _other(getattr(scene, place)) for place in both}
    return replace(scene, **{place: other for place, other in others.items() if other})


@pytest.mark.parametrize("source, target", [("en", "de"), ("en", "zh"), ("id", "zh")])
def test_references_are_right_and_their_twins_wrong(source, target):
    test = scenes("test")
    references = [scene.sentence(target) for scene in test]
    scores = score_ambiguous_words(test, references, source, target)
    assert scores.words == scores.right > 50
    assert scores.other == 0
    scores = score_ambiguous_words(test, [twin(scene).sentence(target) for scene in test], source, target)
    assert scores.right == 0
    assert scores.other > 0.9 * scores.words


@pytest.mark.parametrize("source, target", [("en", "de"), ("id", "zh")])
def test_one_sense_for_all_is_chance(source, target):
    """What text alone can do: always the sense that is more frequent in training."""
    seen = {}
    for scene in scenes("train"):
        for word in scene.ambiguous(source, target):
            senses = seen.setdefault(word.word, {})
            senses[word.sense] = senses.get(word.sense, 0) + 1
    best = {word: max(senses, key=senses.get) for word, senses in seen.items()}
    tested = [word for scene in scenes("test") for word in scene.ambiguous(source, target)]
    right = sum(best.get(word.word) == word.sense for word in tested)
    assert 0.4 < right / len(tested) < 0.6


@pytest.mark.parametrize("source, target", [("en", "cs"), ("fr", "cs"), ("en", "fr")])
def test_a_word_counts_in_both_senses_or_in_none(source, target):
    for scene in scenes("test"):
        words, others = (one.ambiguous(source, target) for one in (scene, twin(scene)))
        assert [word.word for word in words] == [word.word for word in others]


def test_bad_input_is_named():
    rows = scenes("test")
    assert "2 translations" in message_of(score_ambiguous_words, rows, ["a", "b"], "en", "de")
    assert " de " in message_of(score_ambiguous_words, rows[:20], [""] * 20, "de", "en")


def test_a_guitar_is_no_he():
    she = AmbiguousWord("Dia", "female", ("她",), ("他",), "zh")
    assert she.is_right("她正在看着一把吉他。")
    assert not she.is_right("他正在看着一把吉他。")


def test_the_languages_of_scenes_may_have_a_model_s_codes():
    references = {"val": [scene.sentence("de") for scene in scenes("val")]}
    found = score_scenes(references, "eng", "deu_Latn")
    assert found == score_scenes(references, "en", "de")
    assert found["val"].accuracy == 100
