"""A search's settings: checked, changed, and the same again from a file."""

import json
import math

import numpy as np
import pytest
from message_of import message_of

from kzoo.decoding import GNMT, Exponent, SearchSettings
from kzoo.errors import UserError

DEFAULT = {"beam_size": 5, "length_penalty": 1.0}


@pytest.mark.parametrize(
    ("settings", "entries"),
    [
        (SearchSettings(), DEFAULT),
        (SearchSettings(10, 0.9), {"beam_size": 10, "length_penalty": 0.9}),
        (SearchSettings(4, GNMT(0.6), 99), {"beam_size": 4, "gnmt": 0.6, "max_length": 99}),
        (SearchSettings(min_length=3, no_repeat_ngram=2), {**DEFAULT, "min_length": 3, "no_repeat_ngram": 2}),
        (SearchSettings(np.int64(3), np.float32(0)), {"beam_size": 3, "length_penalty": 0.0}),
    ],
)
def test_they_are_the_same_again_from_a_file(settings, entries):
    assert json.loads(json.dumps(settings.entries())) == entries
    again = SearchSettings.from_entries(entries, "search.json")
    assert again == settings
    assert hash(again) == hash(settings)  # a search is compiled once for each


def test_what_a_file_leaves_out_has_its_default():
    assert SearchSettings.from_entries({}, "search.json") == SearchSettings(5, Exponent(1.0), None)


def test_changes_leave_the_rest_as_it_is():
    settings = SearchSettings(10, GNMT(0.6), 99)
    assert settings.changed(beam_size=2, length_penalty=None) == SearchSettings(2, GNMT(0.6), 99)
    assert settings.changed(length_penalty=0).length_penalty == Exponent(0)
    assert settings.changed(no_repeat_ngram=3).changed(no_repeat_ngram=0) == settings


@pytest.mark.parametrize(
    ("entries", "name"),
    [
        ({"beam": 5}, "beam_size"),
        ({"beam_size": 0}, "beam_size"),
        ({"beam_size": "5"}, "beam_size"),
        ({"beam_size": True}, "beam_size"),
        ({"min_length": -1}, "min_length"),
        ({"min_length": 9, "max_length": 8}, "max_length 8"),
        ({"no_repeat_ngram": False}, "no_repeat_ngram"),
        ({"max_length": 2.5}, "max_length"),
        ({"length_penalty": math.nan}, "length_penalty"),
        ({"length_penalty": 10**400}, "length_penalty"),
        ({"gnmt": True}, "not True"),
        ({"gnmt": 0.6, "length_penalty": 1}, "gnmt"),
    ],
)
def test_what_no_search_can_have_is_named_with_its_file(entries, name):
    message = message_of(SearchSettings.from_entries, entries, "search.json")
    assert "search.json" in message and name in message


def test_only_one_length_penalty_is_given():
    assert "gnmt" in message_of(SearchSettings().changed, gnmt=0.6, length_penalty=1)


def test_a_function_is_in_no_file():
    with pytest.raises(UserError, match="kzoo.decoding.GNMT"):
        SearchSettings(length_penalty=math.sqrt).entries()
