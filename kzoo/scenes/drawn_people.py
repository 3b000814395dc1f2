"""How people look, in the pose of their action: 30 units high, on y = 0, facing right.

Sex, age, clothing and profession are visible.
"""

from dataclasses import dataclass

from kzoo.scenes.pen import (
    GOLD,
    INK,
    LEAF,
    LILAC,
    NAVY,
    PAPER,
    PURPLE,
    ROSE,
    STEEL,
    TURQUOISE,
    WATER,
    WOOD,
)
from kzoo.scenes.scene import PROFESSIONS

_SKINS = ((250, 208, 170), (222, 170, 126), (176, 122, 84), (238, 190, 150))
_HAIRS = ((84, 52, 30), (44, 36, 36), (66, 40, 24), (196, 140, 60))
OLD_HAIR = (206, 206, 212)
_CHILD_TROUSERS = (232, 150, 70)


@dataclass(frozen=True)
class Pose:
    """The pose of a person or an animal.

    Args:
        legs: "straight", "walk", "run", "sit", "lie", "jump", "dance" or "ride".
        arms: "down", "low", "forward", "face", "wave", "up" or "hips".
    """

    legs: str = "straight"
    arms: str = "down"


_DROP = {"sit": 6, "ride": 6}  # how much lower the hips are
HANDS = {  # of a standing person's nearer arm
    "down": (5, 11),
    "low": (8, 12),
    "forward": (9, 17),
    "face": (7, 22),
    "wave": (8, 29),
    "up": (8, 29),
    "hips": (4, 12),
}


def hand(pose: Pose) -> tuple[int, int]:
    """Return where the nearer hand of a person in this pose is."""
    x, y = HANDS[pose.arms]
    return x, y - _DROP.get(pose.legs, 0)


def draw_person(p, entity, pose: Pose, looks: int):
    """Draw one person.

    Args:
        p: `Pen` whose fill is the colour of the clothing.
        entity: `Entity`; its count and side do not matter.
        pose: what arms and legs do.
        looks: 0 to 3. Skin and hair, which no sentence mentions.
    """
    skin, hair = _SKINS[looks], OLD_HAIR if entity.size == "old" else _HAIRS[looks]
    female, child = entity.sex == "female", not entity.sex
    hips = 11 - _DROP.get(pose.legs, 0)
    at_work = entity.kind in PROFESSIONS  # their sex is shown only by the picture
    skirt = ROSE if at_work else PURPLE
    trousers = _CHILD_TROUSERS if child else skin if female else TURQUOISE if at_work else NAVY
    worn = p.fill if entity.clothing in ("coat", "jacket", "shirt", "sweater") else LILAC
    sleeve = skin if entity.clothing == "shirt" else worn

    _tools(p, entity)
    _legs(p, pose.legs, hips, trousers)
    if female:
        p.shape(-3, hips + 3, 3, hips + 3, 8, hips - 7, -8, hips - 7, colour=skirt)
    if entity.clothing == "coat":
        wide, hem = (6, hips - 1) if female else (4, hips - 5)
        p.shape(-4, hips + 9, 4, hips + 9, wide, hem, -wide, hem)
    p.box(-4, hips, 4, hips + 9, worn)
    if child and entity.clothing != "coat":
        p.box(-2, hips, 2, hips + 4, trousers)
    _garment(p, entity.clothing, hips)
    _arms(p, pose.arms, hips, sleeve, skin)
    _head(p, entity, hips + 10, skin, hair, skirt)
    if entity.clothing == "scarf":
        p.box(-4, hips + 8, 4, hips + 11)
        p.box(-5, hips + 2, -2, hips + 9)


def _legs(p, legs, hips, colour):
    if legs == "walk":
        p.line(-1, hips, -6, 1, colour=colour, width=3)
        p.line(1, hips, 6, 1, colour=colour, width=3)
    elif legs == "run":
        p.line(-1, hips, -4, 5, -9, 6, colour=colour, width=3)
        p.line(1, hips, 7, 8, 7, 1, colour=colour, width=3)
    elif legs in ("sit", "ride"):
        p.line(-2, hips, 7, hips, colour=colour, width=3)
        p.line(7, hips, 7, hips - 5, colour=colour, width=3)
    elif legs == "jump":
        p.line(-2, hips, -7, 7, -5, 3, colour=colour, width=3)
        p.line(2, hips, 7, 7, 5, 3, colour=colour, width=3)
    elif legs == "dance":
        p.line(-2, hips, -2, 1, colour=colour, width=3)
        p.line(1, hips, 9, 7, colour=colour, width=3)
    else:
        p.box(-4, 0, -1, hips, colour)
        p.box(1, 0, 4, hips, colour)


def _garment(p, clothing, hips):
    """Draw the parts that distinguish coats, jackets, shirts and sweaters."""
    if clothing == "coat":
        for y in (-3, 1, 5):
            p.box(0, hips + y, 1, hips + y + 1, p.shade)
    elif clothing == "jacket":
        p.shape(-1, hips + 9, 2, hips + 9, 1, hips, 0, hips, colour=PAPER)
    elif clothing == "shirt":
        p.shape(-3, hips + 9, 3, hips + 9, 0, hips + 6, colour=PAPER)
    elif clothing == "sweater":
        for y in (1, 4, 7):
            p.box(-4, hips + y, 4, hips + y, p.shade)


def _arms(p, arms, hips, sleeve, skin):
    x, y = HANDS[arms]
    y += hips - 11
    shoulder = hips + 8
    if arms == "up":
        p.line(-4, shoulder, -8, y, colour=sleeve, width=2)
    elif arms == "hips":
        p.line(-4, shoulder, -8, hips + 5, -4, hips + 1, colour=sleeve, width=2)
        p.line(4, shoulder, 8, hips + 5, 4, hips + 1, colour=sleeve, width=2)
        return
    else:
        p.line(-4, shoulder, -6, hips + 1, colour=sleeve, width=2)
    p.line(3, shoulder, x, y, colour=sleeve, width=2)
    p.box(x - 1, y - 1, x + 1, y + 1, skin)


def _head(p, entity, neck, skin, hair, ribbon):
    if entity.kind == "girl":
        p.oval(-9, neck - 1, -4, neck + 6, hair)
        p.oval(4, neck - 1, 9, neck + 6, hair)
    elif entity.sex == "female":
        p.shape(-5, neck + 8, 5, neck + 8, 7, neck - 3, -7, neck - 3, colour=hair)
    p.oval(-4, neck, 4, neck + 9, skin)
    if not entity.sex:
        p.line(0, neck + 9, 1, neck + 11, colour=hair, width=1)
    else:
        p.box(-4, neck + 7, 4, neck + 9, hair)
        p.box(-5, neck + 4, -4, neck + 8, hair)
    if entity.sex == "male" and entity.kind != "boy":
        p.box(-1, neck + 1, 4, neck + 2, hair)  # a beard
    if entity.sex == "female":
        p.box(-5, neck + 6, 5, neck + 7, ribbon)
    p.box(0, neck + 5, 1, neck + 6, INK)
    p.box(3, neck + 5, 4, neck + 6, INK)
    if entity.clothing == "hat":
        p.box(-6, neck + 7, 6, neck + 9)
        p.box(-4, neck + 9, 4, neck + 13)
    elif entity.kind == "farmer":
        p.box(-7, neck + 8, 7, neck + 9, GOLD)
        p.box(-3, neck + 9, 3, neck + 11, GOLD)
    elif entity.kind == "student":
        p.shape(-6, neck + 9, 0, neck + 12, 6, neck + 9, 0, neck + 7, colour=INK)
    elif entity.kind == "doctor":
        p.oval(-1, neck + 6, 3, neck + 10, PAPER)


def _tools(p, entity):
    """Draw the tools behind a person that show the profession, or the age."""
    if entity.size == "old":
        p.line(-7, 0, -7, 11, -5, 12, colour=WOOD, width=1)
    if entity.kind == "teacher":
        p.box(-13, 8, -5, 19, WOOD)
        p.box(-12, 9, -6, 18, LEAF)
        p.line(-11, 15, -8, 15, colour=PAPER)
    elif entity.kind == "doctor":
        p.box(-13, 3, -5, 10, PAPER)
        p.box(-10, 4, -8, 9, LEAF)
        p.box(-12, 6, -6, 7, LEAF)
    elif entity.kind == "student":
        p.oval(-10, 9, -3, 20, WATER)
    elif entity.kind == "singer":
        p.line(-9, 0, -9, 18, colour=STEEL, width=1)
        p.oval(-11, 17, -7, 22, INK)
    elif entity.kind == "farmer":
        p.line(-9, 0, -9, 16, colour=WOOD, width=1)
        p.shape(-12, 24, -11, 18, -7, 18, -6, 24, -8, 19, -9, 24, -10, 19, colour=STEEL)
