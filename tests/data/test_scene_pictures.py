"""The scenes' pictures: the same everywhere, all that is said is seen, and the senses look different."""

import hashlib
from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest

from kzoo.errors import UserError
from kzoo.scenes import Entity, Scene, scenes
from kzoo.scenes.background import _SKIES, background
from kzoo.scenes.drawn_actions import ACTIONS
from kzoo.scenes.drawn_places import PLACES
from kzoo.scenes.pen import COLOURS, PURPLE, ROSE, TURQUOISE
from kzoo.scenes.picture import _DRAWN, draw, pictures
from kzoo.scenes.sampling import COLOURS as COLOUR_NAMES
from kzoo.scenes.sampling import PEOPLE
from kzoo.scenes.scene import OTHER_SENSE, PROFESSIONS, SENSES

# SHA-256 of the first 50 pictures of the test split; Pillow 10.4, 11.3, 12.0 and 13.0 draw the same.
DIGEST = "f4cfffed518203205b9840444ab365ced147b5dae1980902c443d3bc46226cd4"
THINGS = [key for key in _DRAWN if key.split("/")[0] not in (*PEOPLE, *PROFESSIONS)]


def entity(key, **looks):
    kind, _, sense = key.partition("/")
    clothing = "coat" if kind in (*PEOPLE, *PROFESSIONS) else ""
    return Entity(kind, sense, **{"colour": "red", "clothing": clothing, "size": "big", **looks})


def alone(key, **looks):
    return draw(Scene("existing", "park", "", "day", "", entity(key, **looks)))


def pixels(picture, colour):
    """Return how many pixels have exactly this colour."""
    return int((picture == np.array(colour)).all(-1).sum())


def colours(picture):
    """Return the picture's colours, each as one number."""
    return set(np.unique(picture @ np.array([65536, 256, 1])))


def differ(one, other):
    return int((one != other).any(-1).sum())


def twins(split):
    """Every scene with an ambiguous word, and the same with its other sense."""
    other_kind = {"man": "woman", "woman": "man", "boy": "girl", "girl": "boy"}
    for scene in scenes(split):
        for place in ("subject", "object"):
            found = getattr(scene, place)
            if found and found.pronoun:
                yield scene, replace(scene, **{place: replace(found, kind=other_kind[found.kind])}), found
            elif found and found.sense:
                sense = OTHER_SENSE[found.kind, found.sense]
                yield scene, replace(scene, **{place: replace(found, sense=sense)}), found


def test_pictures_never_change():
    drawn = [draw(scene) for scene in scenes("test")[:50]]
    assert hashlib.sha256(np.array(drawn).tobytes()).hexdigest() == DIGEST


def test_a_whole_split_is_drawn_in_order():
    drawn = pictures("val")
    assert (drawn.shape, drawn.dtype) == ((1000, 64, 64, 3), np.uint8)
    for i in (0, 499, 999):
        np.testing.assert_array_equal(drawn[i], draw(scenes("val")[i]))
    assert min(len(colours(picture)) for picture in drawn) >= 5


def test_every_word_of_the_grammar_has_a_drawing():
    chinese, english = (import_module(f"kzoo.scenes.{name}") for name in ("chinese", "english"))
    assert _DRAWN.keys() == chinese.NOUNS.keys()
    assert ACTIONS.keys() == english.ACTIONS.keys() | {""}
    assert PLACES.keys() == english.SETTINGS.keys()
    assert _SKIES.keys() == english.TIMES.keys() | {"day"}
    assert COLOURS.keys() == set(COLOUR_NAMES)


def test_no_background_has_a_colour_that_tells_something():
    told = colours(np.array([*COLOURS.values(), ROSE, TURQUOISE, PURPLE]))
    for setting in PLACES:
        for time in _SKIES:
            for size in ("", "old"):
                image = np.asarray(background(setting, size, time))
                assert told.isdisjoint(colours(image)), setting


@pytest.mark.parametrize("split", ["val", "test"])
def test_the_senses_look_different_wherever_they_stand(split):
    found = 0
    for scene, twin, _ in twins(split):
        assert differ(draw(scene), draw(twin)) >= 60, scene
        found += 1
    assert found > 200


@pytest.mark.parametrize("split", ["val", "test"])
def test_each_sense_of_a_noun_has_its_own_accent(split):
    for scene, twin, word in twins(split):
        if not word.pronoun:
            accents = [
                [pixels(picture, rgb) for rgb in (ROSE, TURQUOISE)] for picture in map(draw, (scene, twin))
            ]
            (one, none), (zero, other) = sorted(accents, reverse=True)
            assert none == zero == 0, scene
            assert min(one, other) >= 6, scene


def test_senses_differ_where_all_else_is_equal():
    for kind in SENSES:
        for colour in COLOURS:
            for size in ("small", "big"):
                for count in (1, 2, 3):
                    looks = {"colour": colour, "size": size, "count": count}
                    first, second = (alone(f"{kind}/{sense}", **looks) for sense in SENSES[kind])
                    assert differ(first, second) >= 60, (kind, looks)


@pytest.mark.parametrize("key", _DRAWN)
def test_colours_are_seen(key):
    for colour, rgb in COLOURS.items():
        picture = alone(key, colour=colour)
        assert pixels(picture, rgb) >= 15, colour
        others = sum(pixels(picture, other) for name, other in COLOURS.items() if name != colour)
        assert others == 0, colour


@pytest.mark.parametrize("clothing", ["coat", "jacket", "shirt", "hat", "sweater", "scarf"])
def test_clothing_is_seen(clothing):
    for colour, rgb in COLOURS.items():
        for kind in ("man", "girl"):
            here = alone(kind, colour=colour, clothing=clothing)
            assert pixels(here, rgb) >= 10
            other = alone(kind, colour=colour, clothing="coat" if clothing != "coat" else "hat")
            assert differ(here, other) >= 20


@pytest.mark.parametrize("key", _DRAWN)
def test_counts_are_seen(key):
    """By all that is drawn: thin lines of a colour may be thinner where there are more things."""
    empty = np.asarray(background("park", "", "day"))
    for size in ("small", "big"):
        one, two, three = (differ(alone(key, count=n, size=size), empty) for n in (1, 2, 3))
        assert 1.05 * one < two
        assert 1.05 * two < three


@pytest.mark.parametrize("key", THINGS)
def test_sizes_are_seen(key):
    small, big = (pixels(alone(key, size=size), COLOURS["red"]) for size in ("small", "big"))
    assert big > 1.5 * small


def test_ages_are_seen():
    for kind in ("man", "woman"):
        assert differ(alone(kind, size="young"), alone(kind, size="old")) >= 15
    for kind in ("dog", "sheep", "monkey"):
        assert differ(alone(kind, size=""), alone(kind, size="old")) >= 5


@pytest.mark.parametrize("key", _DRAWN)
def test_sides_are_seen(key):
    for side in ("left", "right"):
        columns = np.nonzero((alone(key, side=side) == COLOURS["red"]).all(-1))[1]
        assert (columns.mean() < 32) == (side == "left")


@pytest.mark.parametrize("side", ["left", "right"])
def test_two_that_share_a_side_are_both_there(side):
    """ "On the left, a woman and a dog are walking in the park."."""
    who, other = entity("girl", side=side, size=""), entity("dog", colour="blue", size="small")
    picture = draw(Scene("pair", "park", "", "day", "side", who, "walk", other))
    for colour in ("red", "blue"):
        columns = np.nonzero((picture == COLOURS[colour]).all(-1))[1]
        assert (columns.mean() < 32) == (side == "left")


def test_every_noun_action_place_and_time_looks_different():
    nouns = {key: alone(key) for key in _DRAWN}
    who, what = entity("woman"), entity("dog", side="right")
    doing = {
        action: draw(
            Scene("acting" if with_object else "doing", "park", "", "day", "", who, action, with_object)
        )
        for action in ACTIONS
        for with_object in [None if ACTIONS[action].gap == 9 and action != "ride" else what]
        if action not in ("", "await", "stand")  # "wait" and "await" are one sign
    }
    places = {key: draw(Scene("existing", key, "", "day", "", entity("apple"))) for key in PLACES}
    times = {key: draw(Scene("existing", "park", "", key, "", entity("apple"))) for key in _SKIES}
    sizes = {
        key: draw(Scene("existing", "park", key, "day", "", entity("apple"))) for key in ("", "small", "big")
    }
    for drawn, least in ((nouns, 30), (doing, 15), (places, 100), (times, 100), (sizes, 100)):
        keys = list(drawn)
        for i, key in enumerate(keys):
            for other in keys[:i]:
                assert differ(drawn[key], drawn[other]) >= least, (key, other)


def test_relations_look_different():
    drawn = [
        draw(
            Scene("beside", "park", "", "day", "", entity("ball"), "", entity("car", colour="blue"), relation)
        )
        for relation in ("next to", "in front of", "behind")
    ]
    hidden, whole = pixels(drawn[2], COLOURS["red"]), pixels(drawn[0], COLOURS["red"])
    assert whole // 3 < hidden < whole
    assert pixels(drawn[1], COLOURS["red"]) == whole


def test_unknown_splits_are_refused():
    with pytest.raises(UserError, match="'dev'"):
        pictures("dev")
