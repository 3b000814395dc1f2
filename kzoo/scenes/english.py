"""Scenes in English."""

from kzoo.scenes.caption import opening, written
from kzoo.scenes.scene import Entity, Scene

NOUNS = {  # singular, plural, where it is not just "-s"
    "man": ("man", "men"),
    "woman": ("woman", "women"),
    "child": ("child", "children"),
    "sheep": ("sheep", "sheep"),
    "box": ("box", "boxes"),
    "bench": ("bench", "benches"),
    "mouse": ("mouse", "mice"),
    "brush": ("brush", "brushes"),
}
CLOTHES = {"scarf": "scarves"}
NUMBERS = {2: "two", 3: "three"}

SETTINGS = {  # preposition, noun
    "park": ("in", "park"),
    "street": ("on", "street"),
    "beach": ("on", "beach"),
    "garden": ("in", "garden"),
    "forest": ("in", "forest"),
    "meadow": ("in", "meadow"),
    "field": ("in", "field"),
    "bridge": ("on", "bridge"),
    "market": ("at", "market"),
    "playground": ("on", "playground"),
    "square": ("on", "square"),
    "river": ("by", "river"),
    "lake": ("by", "lake"),
    "station": ("at", "station"),
    "farm": ("on", "farm"),
    "yard": ("in", "yard"),
    "mountain": ("on", "mountain"),
    "kitchen": ("in", "kitchen"),
    "living room": ("in", "living room"),
    "library": ("in", "library"),
    "café": ("in", "café"),
    "classroom": ("in", "classroom"),
    "shop": ("in", "shop"),
    "garage": ("in", "garage"),
    "museum": ("in", "museum"),
    "office": ("in", "office"),
}
TIMES = {
    "morning": "In the morning",
    "noon": "At noon",
    "evening": "In the evening",
    "night": "At night",
    "sun": "On a sunny day",
    "wind": "On a windy day",
    "cold": "On a cold day",
    "rain": "In the rain",
    "snow": "In the snow",
    "fog": "In the fog",
}
SIDES = {"left": "On the left", "right": "On the right"}

ACTIONS = {
    "sleep": "sleeping",
    "sit": "sitting",
    "stand": "standing",
    "lie": "lying",
    "walk": "walking",
    "run": "running",
    "jump": "jumping",
    "wait": "waiting",
    "dance": "dancing",
    "sing": "singing",
    "read": "reading",
    "work": "working",
    "eat": "eating",
    "wave": "waving",
    "cry": "crying",
    "hold": "holding",
    "carry": "carrying",
    "watch": "looking at",
    "photograph": "photographing",
    "draw": "drawing",
    "wash": "washing",
    "buy": "buying",
    "push": "pushing",
    "repair": "repairing",
    "point": "pointing at",
    "seek": "looking for",
    "feed": "feeding",
    "stroke": "stroking",
    "follow": "following",
    "greet": "greeting",
    "await": "waiting for",
    "ride": "riding",
}
PRONOUNS = {"male": "he", "female": "she"}


def sentence(scene: Scene) -> str:
    """Return the caption in English.

    Args:
        scene: the scene.

    Example:
        >>> sentence(Scene("doing", "park", "", "day", "", Entity("dog"), "sleep"))
        'A dog is sleeping in the park.'
    """
    subject, many = _phrase(scene.subject), scene.subject.count > 1
    if scene.pattern in ("existing", "beside"):
        place = _place(scene) if scene.pattern == "existing" else f"{scene.relation} {_phrase(scene.object)}"
        text = f"there {'are' if many else 'is'} {subject} {place}"
    else:
        if scene.pattern == "pair":
            subject, many = f"{subject} and {_phrase(scene.object)}", True
        second = {"together": "with ", "acting": ""}.get(scene.pattern)
        partner = "" if second is None else f" {second}{_phrase(scene.object)}"
        text = f"{subject} {'are' if many else 'is'} {ACTIONS[scene.action]}{partner} {_place(scene)}"
    return written(", ".join([*opening(scene, TIMES, SIDES), text]))


def forms(entity: Entity) -> tuple[str, ...]:
    """Return every form of the entity's word.

    Args:
        entity: the entity.

    Example:
        >>> forms(Entity("bat", sense="club"))
        ('bat', 'bats')
    """
    return (PRONOUNS[entity.sex],) if entity.pronoun else _noun(entity.kind)


def _noun(kind: str) -> tuple[str, str]:
    return NOUNS.get(kind) or (kind, kind + "s")


def _phrase(entity: Entity) -> str:
    if entity.pronoun:
        return PRONOUNS[entity.sex]
    adjectives = [entity.said_size] if entity.said_size else []
    if entity.said_colour and not entity.clothing:
        adjectives.append(entity.colour)
    text = " ".join([*adjectives, _noun(entity.kind)[entity.count > 1]])
    text = f"{NUMBERS[entity.count]} {text}" if entity.count > 1 else _with_article(text)
    if entity.said_colour and entity.clothing:
        text += f" in {_clothing(entity)}"
    return text


def _clothing(entity: Entity) -> str:
    if entity.count == 1:
        return _with_article(f"{entity.colour} {entity.clothing}")
    return f"{entity.colour} {CLOTHES.get(entity.clothing, entity.clothing + 's')}"


def _with_article(text: str) -> str:
    return f"{'an' if text[0] in 'aeiou' else 'a'} {text}"


def _place(scene: Scene) -> str:
    preposition, noun = SETTINGS[scene.setting]
    return " ".join([preposition, "the", *([scene.setting_size] if scene.setting_size else []), noun])
