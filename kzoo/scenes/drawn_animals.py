"""How animals look, in the pose of their action: about 16 units wide, on y = 0, facing right."""

from kzoo.scenes.drawn_people import OLD_HAIR
from kzoo.scenes.pen import GOLD, INK, LEAF, ORANGE, PAPER, PINK, STEEL, WOOD


def _stand(p, legs, places, height, colour=None, width=2):
    """Draw an animal's legs; a lying animal is lowered by their height."""
    colour = colour or p.shade
    if legs == "lie":
        p.lift = 1 - height
        return
    slant = {"walk": 2, "run": 5, "jump": 4}.get(legs, 0)
    for i, x in enumerate(places):
        if legs == "sit" and x < 0:
            continue
        way = -1 if (x < 0 if legs in ("run", "jump") else i % 2) else 1
        p.line(x, height, x + way * slant, 0, colour=colour, width=width)
    if legs == "sit":
        p.oval(min(places) - 3, 0, min(places) + 6, height + 4)


def _face(p, x, y, old, muzzle=0):
    """Draw the eye, and the grey parts of old animals."""
    p.box(x, y, x + 1, y + 1, ORANGE if max(p.fill) < 60 else INK)
    if old:
        p.box(x + muzzle, y - 6, x + muzzle + 1, y - 2, OLD_HAIR)
        p.line(-9, 0, -9, 9, -7, 10, colour=WOOD, width=1)


def _dog(p, entity, legs):
    _stand(p, legs, (-6, -3, 3, 6), 5)
    p.line(-7, 9, -11, 14, width=2)
    p.oval(-8, 4, 7, 10)
    p.oval(3, 8, 11, 15)
    p.box(9, 9, 14, 12)
    p.box(13, 11, 14, 12, INK)
    p.oval(2, 8, 5, 15, p.shade)
    _face(p, 8, 12, entity.size == "old", 3)


def _cat(p, entity, legs):
    _stand(p, legs, (-6, -3, 3, 5), 5)
    p.line(-7, 8, -11, 10, -11, 16, -8, 17, width=2)
    p.oval(-8, 4, 6, 10)
    p.shape(2, 17, 3, 12, 6, 14, 9, 14, 12, 12, 12, 17, 9, 15, 5, 15)
    p.oval(2, 8, 12, 15)
    p.line(9, 10, 15, 11, colour=STEEL)
    p.line(9, 9, 15, 8, colour=STEEL)
    p.box(5, 12, 6, 13, LEAF)
    _face(p, 9, 12, entity.size == "old", 2)


def _bird(p, entity, legs):
    _stand(p, legs, (-1, 2), 4, ORANGE, 1)
    p.shape(-12, 9, -3, 10, -3, 5)
    p.oval(-7, 3, 6, 11)
    p.oval(1, 8, 9, 15)
    p.shape(8, 13, 13, 11, 8, 10, colour=ORANGE)
    p.shape(-5, 8, 2, 9, -6, 16, -9, 15, colour=p.shade)
    _face(p, 5, 12, entity.size == "old", 2)


def _duck(p, entity, legs):
    _stand(p, legs, (-2, 3), 3, ORANGE, 3)
    p.oval(-10, 2, 7, 9)
    p.shape(-10, 5, -12, 11, -5, 8)
    p.box(3, 7, 6, 12)
    p.oval(2, 10, 9, 17)
    p.box(8, 11, 15, 13, ORANGE)
    p.oval(-6, 4, 2, 8, p.shade)
    _face(p, 6, 14, entity.size == "old", 1)


def _rabbit(p, entity, legs):
    _stand(p, legs, (-4, 4), 2)
    p.oval(-9, 3, -4, 8, PAPER)
    p.oval(-7, 1, 5, 10)
    p.oval(3, 14, 6, 24)
    p.oval(7, 14, 10, 24)
    p.box(4, 16, 4, 21, PINK)
    p.box(8, 16, 8, 21, PINK)
    p.oval(1, 7, 10, 15)
    _face(p, 7, 11, entity.size == "old", 1)


def _horse(p, entity, legs):
    _stand(p, legs, (-6, -4, 4, 6), 8)
    p.line(-7, 12, -10, 9, -10, 4, colour=p.shade, width=2)
    p.oval(-8, 7, 8, 13)
    p.shape(3, 12, 7, 20, 11, 20, 8, 9)
    p.shape(7, 21, 9, 21, 15, 17, 14, 15, 9, 17)
    p.line(3, 13, 6, 21, colour=p.shade, width=2)
    _face(p, 10, 19, entity.size == "old", 3)


def _donkey(p, entity, legs):
    _stand(p, legs, (-6, -4, 4, 6), 7)
    p.line(-7, 11, -10, 5, colour=p.shade, width=1)
    p.oval(-8, 6, 8, 13)
    p.shape(4, 11, 6, 17, 11, 17, 8, 8)
    p.shape(5, 18, 9, 19, 15, 13, 12, 11, 8, 14)
    p.oval(12, 11, 16, 15, PAPER)
    p.oval(2, 17, 5, 26)
    p.oval(7, 17, 10, 26)
    _face(p, 9, 16, entity.size == "old", 2)


def _cow(p, entity, legs):
    _stand(p, legs, (-7, -4, 4, 7), 6)
    p.line(-9, 12, -11, 4, colour=p.shade, width=1)
    p.oval(-2, 4, 3, 8, PINK)
    p.box(-9, 6, 8, 14)
    p.oval(-7, 9, -2, 14, p.shade)
    p.oval(1, 7, 6, 12, p.shade)
    p.shape(7, 16, 13, 16, 14, 9, 9, 9)
    p.box(10, 8, 15, 11, PINK)
    p.line(7, 16, 5, 20, colour=PAPER, width=1)
    p.line(12, 16, 14, 20, colour=PAPER, width=1)
    _face(p, 11, 13, entity.size == "old", -2)


def _sheep(p, entity, legs):
    _stand(p, legs, (-5, -3, 3, 5), 5, INK)
    for x, y in ((-9, 5), (-5, 8), (0, 8), (3, 5), (-4, 3), (0, 3)):
        p.oval(x, y, x + 7, y + 6)
    p.oval(7, 6, 13, 14, INK)
    p.oval(5, 11, 11, 16)
    p.box(10, 10, 11, 11, PAPER)
    if entity.size == "old":
        _face(p, 10, 10, True, 1)


def _goat(p, entity, legs):
    _stand(p, legs, (-6, -3, 3, 6), 6)
    p.line(-8, 11, -10, 14, width=2)
    p.oval(-8, 5, 7, 12)
    p.shape(3, 10, 6, 17, 9, 17, 8, 9)
    p.shape(5, 18, 8, 18, 14, 13, 10, 11)
    p.line(6, 18, 3, 24, -1, 24, colour=GOLD, width=2)
    p.shape(9, 12, 12, 12, 11, 6, colour=PAPER)
    _face(p, 9, 15, entity.size == "old", 3)


def _camel(p, entity, legs):
    _stand(p, legs, (-6, -4, 3, 5), 8)
    p.oval(-8, 7, 7, 13)
    p.oval(-7, 10, -1, 18)
    p.oval(0, 10, 6, 18)
    p.line(6, 10, 10, 10, 12, 20, width=3)
    p.shape(10, 22, 13, 22, 17, 19, 16, 17, 11, 19)
    p.box(-9, 7, -8, 11, p.shade)
    _face(p, 13, 20, entity.size == "old", 2)


def _monkey(p, entity, legs):
    _stand(p, legs, (-3, 3), 4, p.fill, 3)
    p.line(-4, 4, -10, 3, -12, 9, -9, 13, -7, 11, width=1)
    p.oval(-5, 2, 5, 12)
    p.line(-4, 10, -8, 5, width=2)
    p.line(4, 10, 9, 14, width=2)
    p.oval(-8, 13, -4, 18, PINK)
    p.oval(4, 13, 8, 18, PINK)
    p.oval(-5, 10, 5, 20)
    p.oval(-3, 11, 4, 17, (236, 196, 150))
    p.box(-2, 15, -1, 16, INK)
    _face(p, 2, 15, entity.size == "old", -1)


def _pig(p, entity, legs):
    _stand(p, legs, (-5, -3, 3, 5), 4)
    p.line(-8, 8, -11, 9, -10, 12, -8, 11, colour=PINK, width=1)
    p.oval(-9, 3, 7, 13)
    p.oval(2, 5, 12, 14)
    p.shape(3, 16, 4, 12, 8, 13)
    p.box(11, 6, 14, 11, PINK)
    p.box(12, 8, 13, 9, INK)
    _face(p, 8, 11, entity.size == "old", 2)


ANIMALS = {
    "dog": _dog,
    "cat": _cat,
    "bird": _bird,
    "duck": _duck,
    "rabbit": _rabbit,
    "horse": _horse,
    "cow": _cow,
    "sheep": _sheep,
    "goat": _goat,
    "donkey": _donkey,
    "camel": _camel,
    "monkey": _monkey,
    "pig": _pig,
}
