"""Language pairs: which there are, and what is no choice of them."""

import itertools

import pytest
from message_of import message_of

from kzoo.data.language_pairs import language_pairs, two_languages

LANGUAGES = ["en", "de", "fr", "cs"]
ALL = set(itertools.permutations(LANGUAGES, 2))
SAME = {(language, language) for language in LANGUAGES}


@pytest.mark.parametrize("monolingual", [False, True])
def test_the_settings_of_table_1_and_figure_1(monolingual):
    centred = {pair for pair in ALL if "en" in pair}
    settings = [({}, ALL), ({"centre": "en"}, centred)]
    for a, b in itertools.combinations(LANGUAGES, 2):
        settings.append(({"left_out": f"{a}-{b}"}, ALL - {(a, b), (b, a)}))
    for arguments, expected in settings:
        pairs = language_pairs(LANGUAGES, monolingual=monolingual, **arguments)
        assert len(pairs) == len(set(pairs))
        assert set(pairs) == expected | (SAME if monolingual else set())


def test_centre_and_left_out_together():
    assert set(language_pairs(["en", "de", "fr"], "en", "en-de")) == {("en", "fr"), ("fr", "en")}


def test_pairs_can_be_named_one_by_one():
    assert language_pairs(["en", "de", "fr"], only=["de-en", "fr-fr"]) == [("de", "en"), ("fr", "fr")]


def test_a_code_may_have_a_hyphen():
    codes = ["pt-BR", "en", "zh-Hant-TW"]
    for pair in (("pt-BR", "en"), ("en", "zh-Hant-TW"), ("zh-Hant-TW", "pt-BR")):
        assert two_languages("-".join(pair), codes) == pair


@pytest.mark.parametrize(
    ("arguments", "name"),
    [
        ((["en", "de", "en"],), "'en'"),
        ((LANGUAGES, "eng"), " en?"),
        ((LANGUAGES, None, "de-it"), "'de-it'"),
        ((LANGUAGES, None, "de"), "'de'"),
        ((LANGUAGES, None, "de-de"), "'de-de'"),
        ((LANGUAGES, "en", "de-fr"), "'de-fr'"),
        ((["en", "de"], None, None, False, ["en-it"]), "'en-it'"),
        ((["en", "de"], None, None, False, ["en-de", "en-de"]), "en-de"),
        ((["en", "de"], None, None, False, ["en-en"]), "en-en"),
        ((["en"],), "en: "),
        ((["en", "de"], None, "en-de", True), "en, de: "),
        (([],), "no language"),
    ],
)
def test_bad_input_is_named(arguments, name):
    assert name in message_of(language_pairs, *arguments)
