"""Draws the scenes of a split: seeded, the same on every machine, no sentence shared between splits.

Only `Random.random` is used: Python promises the same numbers from it in every version.
"""

from functools import lru_cache
from random import Random

from kzoo.data.scenes.scene import LANGUAGES, PROFESSIONS, Entity, Scene
from kzoo.errors import UserError, nearest

SPLITS = {"train": 12_000, "val": 1_000, "test": 1_000}
_SEEDS = {"train": 1, "val": 2, "test": 3}
_LONGEST = 16  # words of an English sentence

PEOPLE = ("man", "woman", "boy", "girl", "child")
SMALL_ANIMALS = ("dog", "cat", "bird", "duck", "rabbit")
BIG_ANIMALS = ("horse", "cow", "sheep", "goat", "donkey", "elephant", "monkey", "pig")
RIDDEN = ("horse", "donkey", "elephant")
HAND_THINGS = (
    *("ball", "book", "bag", "umbrella", "guitar", "kite", "cup", "basket", "hat", "lamp", "flower", "apple"),
    *("clock", "bottle", "drum", "flag", "picture", "key", "candle", "bucket", "camera", "plate", "knife"),
    *("brush", "box"),
)
BIG_THINGS = ("chair", "table", "bicycle", "ladder", "car", "boat", "cart")
LANDMARKS = ("box", "chair", "table", "bicycle", "car", "tree", "bench", "ladder", "basket", "boat", "cart")
AMBIGUOUS = {  # noun: whether it can be held
    "bat": True,
    "mouse": True,
    "seal": True,
    "trunk": True,
    "pipe": True,
    "bow": True,
    "crane": False,
}
SENSES = {
    "bat": ("club", "animal"),
    "crane": ("machine", "bird"),
    "mouse": ("device", "animal"),
    "seal": ("stamp", "animal"),
    "trunk": ("box", "tree"),
    "pipe": ("smoking", "tube"),
    "bow": ("weapon", "ribbon"),
} | dict.fromkeys(PROFESSIONS, ("male", "female"))

COLOURS = ("red", "blue", "green", "yellow", "white", "black", "brown", "grey")
FURS = ("white", "black", "brown", "grey")
CLOTHES = ("coat", "jacket", "shirt", "hat", "sweater", "scarf")

OUTDOORS = (
    *("park", "street", "beach", "garden", "forest", "meadow", "field", "bridge", "market", "playground"),
    *("square", "river", "lake", "station", "farm", "yard", "mountain"),
)
INDOORS = ("kitchen", "living room", "library", "café", "classroom", "shop", "garage", "museum", "office")
TIMES = ("morning", "noon", "evening", "night")
WEATHERS = ("sun", "wind", "cold", "rain", "snow", "fog")

ANIMAL_ACTIONS = ("sleep", "sit", "stand", "lie", "walk", "run", "jump", "wait")
PERSON_ACTIONS = (*ANIMAL_ACTIONS, "dance", "sing", "read", "work", "eat", "wave", "cry")
SHARED_ACTIONS = ("walk", "run", "sit", "stand", "wait", "jump")
LOOKING = ("watch", "photograph", "draw", "point", "seek")
HOLDING = (*LOOKING, "hold", "carry")
HAND_ACTIONS = (*HOLDING, "buy", "wash")
BIG_ACTIONS = (*LOOKING, "push", "repair", "wash", "buy")
PERSON_TO_ANIMAL = ("watch", "photograph", "draw", "point", "seek", "feed", "stroke", "follow", "wash")
PERSON_TO_PERSON = ("watch", "photograph", "draw", "point", "seek", "follow", "greet", "await")
ANIMAL_TO_ANY = ("watch", "follow")
RELATIONS = ("next to", "in front of", "behind")


@lru_cache(maxsize=len(SPLITS))
def scenes(split: str) -> tuple[Scene, ...]:
    """Return the scenes of a split; the same ones at every call, on every machine.

    No sentence of "val" or "test" stands twice in them or in "train", in any language.

    Args:
        split: "train" (12,000 scenes), "val" (1,000) or "test" (1,000).

    Returns:
        The scenes; `scene.sentence(language)` puts one into words.

    Raises:
        UserError: no such split.

    Example:
        >>> len(scenes("test"))
        1000
    """
    if split not in SPLITS:
        raise UserError(f"scenes have no split {split!r}, {nearest(split, list(SPLITS))}")
    earlier = {"test": (), "val": ("test",), "train": ("test", "val")}[split]
    taken = {scene.sentence(language) for name in earlier for scene in scenes(name) for language in LANGUAGES}
    random, drawn = Random(_SEEDS[split]), []
    while len(drawn) < SPLITS[split]:
        scene = _draw(random)
        if len(scene.sentence("en").split()) > _LONGEST:
            continue
        sentences = [scene.sentence(language) for language in LANGUAGES]
        if not taken.isdisjoint(sentences):
            continue
        if split != "train":  # which may repeat itself: the same words with both senses teach the most
            taken.update(sentences)
        drawn.append(scene)
    return tuple(drawn)


def _draw(random: Random) -> Scene:
    what = random.random()
    if what < 0.13:
        return _with_noun(random)
    if what < 0.18:
        return _with_people(random, _profession(random))
    if what < 0.24:
        return _with_people(random, _pronoun(random))
    if what < 0.66:
        return _with_people(random, _person(random))
    if what < 0.82:
        return _with_animal(random)
    return _with_thing(random)


def _with_noun(random: Random) -> Scene:
    """A scene with an ambiguous noun; its sense is drawn last, whatever else was drawn."""
    kind = _one_of(random, tuple(AMBIGUOUS))
    thing = _thing(random, kind)
    place = _outdoors(random) if kind == "crane" else _anywhere(random)
    what = random.random()
    if what < 0.6:
        action = _one_of(random, HOLDING if AMBIGUOUS[kind] else LOOKING)
        person = _person(random)
        sense = _one_of(random, SENSES[kind])
        return _scene("acting", place, person, action, _meaning(thing, sense))
    if what < 0.8:
        sense = _one_of(random, SENSES[kind])
        return _scene("existing", place, _meaning(thing, sense))
    landmark, relation = _landmark(random), _one_of(random, RELATIONS)
    sense = _one_of(random, SENSES[kind])
    return _scene("beside", place, _meaning(thing, sense), "", landmark, relation)
