"""How actions look: the actor's pose, and a sign for what a pose cannot show."""

from collections.abc import Callable
from dataclasses import dataclass

from kzoo.scenes.drawn_people import Pose
from kzoo.scenes.pen import GOLD, INK, LEAF, ORANGE, PAPER, PINK, STEEL, SUN, WATER, WOOD, Pen


@dataclass(frozen=True)
class Doing:
    """One action.

    Args:
        pose: of the actor; animals use its legs.
        sign: function that draws the sign, or `None`.
        place: where the sign is: over the "head", in the "hand" of the foremost, at the "back", "between"
            the two, or over the "object".
        gap: units between the actor and the object.
        height: units by which the object is above the ground.
        sign_height: units by which a sign between the two is above the ground.
    """

    pose: Pose = Pose()
    sign: Callable[[Pen], None] | None = None
    place: str = "head"
    gap: int = 9
    height: int = 0
    sign_height: int = 0


def _zzz(p):
    for x, y, wide in ((-4, 0, 3), (0, 4, 4), (4, 9, 5)):
        p.line(x, y + wide, x + wide, y + wide, x, y, x + wide, y, colour=INK)


def _clock(p):
    p.oval(-5, 0, 5, 10, INK)
    p.oval(-4, 1, 4, 9, PAPER)
    p.line(0, 8, 0, 5, 3, 5, colour=INK)


def _notes(p):
    for x, y in ((-6, 0), (2, 3)):
        p.oval(x, y, x + 3, y + 3, INK)
        p.line(x + 3, y + 1, x + 3, y + 8, x + 6, y + 6, colour=INK)


def _book(p):
    p.shape(-5, -1, 0, -3, 5, -1, 5, 5, 0, 3, -5, 5, colour=PAPER)
    p.line(0, -3, 0, 3, colour=INK)


def _hammer(p):
    p.line(0, -3, 3, 6, colour=WOOD, width=2)
    p.box(-1, 5, 7, 9, STEEL)


def _bread(p):
    p.oval(-3, -3, 4, 3, ORANGE)


def _arcs(p):
    p.line(-2, 0, 0, 3, -2, 6, colour=INK)
    p.line(2, -1, 4, 3, 2, 7, colour=INK)


def _tears(p):
    for x, y in ((0, 3), (2, -1), (-1, -4), (3, -6)):
        p.box(x, y, x + 1, y + 2, WATER)


def _eye(p):
    p.shape(-5, 4, 0, 8, 5, 4, 0, 0, colour=PAPER)
    p.oval(-2, 2, 2, 6, INK)


def _camera(p):
    p.box(-3, -2, 4, 3, INK)
    p.shape(5, 8, 7, 4, 11, 4, 8, 1, 9, -3, 5, 0, colour=SUN)


def _sheet(p):
    p.box(-3, -3, 5, 7, PAPER)
    p.line(-1, 3, 3, 0, colour=INK)
    p.line(-1, 0, 6, 9, colour=ORANGE, width=1)


def _arrow(p):
    p.box(-5, 3, 0, 5, ORANGE)
    p.shape(0, 0, 6, 4, 0, 8, colour=ORANGE)


def _lens(p):
    p.line(0, 0, 2, 3, colour=WOOD, width=2)
    p.ring(0, 2, 8, 10, INK, 1)
    p.oval(1, 3, 7, 9, WATER)


def _bubbles(p):
    for x, y, wide in ((-8, 0, 5), (-2, 4, 6), (4, -1, 5)):
        p.oval(x, y, x + wide, y + wide, WATER)
        p.box(x + 1, y + 3, x + 2, y + 3, PAPER)


def _coin(p):
    p.oval(-4, 0, 4, 8, GOLD)
    p.box(0, 2, 0, 6, INK)


def _speed(p):
    for y, wide in ((4, 5), (10, 8), (16, 5)):
        p.box(-wide, y, 0, y, INK)


def _wrench(p):
    p.line(-3, 0, 3, 6, colour=STEEL, width=2)
    p.ring(1, 4, 7, 10, STEEL, 2)


def _bowl(p):
    p.shape(-5, 4, 5, 4, 3, 0, -3, 0, colour=STEEL)
    p.oval(-4, 3, 4, 6, GOLD)


def _heart(p):
    p.oval(-5, 4, 0, 9, PINK)
    p.oval(0, 4, 5, 9, PINK)
    p.shape(-5, 6, 5, 6, 0, 0, colour=PINK)


def _footprints(p):
    p.oval(-5, 0, -1, 2, INK)
    p.oval(1, 3, 5, 5, INK)


def _speech(p):
    p.oval(-6, 2, 6, 11, PAPER)
    p.shape(-4, 4, 0, 3, -6, 0, colour=PAPER)
    p.box(-3, 7, -2, 7, LEAF)
    p.box(0, 7, 1, 7, LEAF)
    p.box(3, 7, 4, 7, LEAF)


ACTIONS = {
    "": Doing(),
    "sleep": Doing(Pose("lie"), _zzz),
    "sit": Doing(Pose("sit")),
    "stand": Doing(),
    "lie": Doing(Pose("lie")),
    "walk": Doing(Pose("walk")),
    "run": Doing(Pose("run", "low"), _speed, "back"),
    "jump": Doing(Pose("jump", "up")),
    "wait": Doing(Pose("straight", "hips"), _clock),
    "dance": Doing(Pose("dance", "up"), _notes),
    "sing": Doing(Pose("straight", "low"), _notes),
    "read": Doing(Pose("straight", "low"), _book, "hand"),
    "work": Doing(Pose("straight", "forward"), _hammer, "hand"),
    "eat": Doing(Pose("straight", "face"), _bread, "hand"),
    "wave": Doing(Pose("straight", "wave"), _arcs, "hand"),
    "cry": Doing(Pose("straight", "face"), _tears, "hand"),
    "hold": Doing(Pose("straight", "forward"), gap=-2, height=12),
    "carry": Doing(Pose("walk", "up"), height=29),
    "watch": Doing(Pose(), _eye, "between", sign_height=18),
    "photograph": Doing(Pose("straight", "face"), _camera, "hand"),
    "draw": Doing(Pose("straight", "forward"), _sheet, "hand"),
    "wash": Doing(Pose("straight", "low"), _bubbles, "object", gap=-2),
    "buy": Doing(Pose("straight", "forward"), _coin, "between", sign_height=13),
    "push": Doing(Pose("walk", "forward"), _speed, "back", gap=-1),
    "repair": Doing(Pose("straight", "low"), _wrench, "object", gap=-1),
    "point": Doing(Pose("straight", "forward"), _arrow, "between", sign_height=13),
    "seek": Doing(Pose("walk", "forward"), _lens, "hand"),
    "feed": Doing(Pose("straight", "low"), _bowl, "between"),
    "stroke": Doing(Pose("straight", "low"), _heart, "object", gap=-4),
    "follow": Doing(Pose("walk"), _footprints, "between"),
    "greet": Doing(Pose("straight", "wave"), _speech, "between", sign_height=20),
    "await": Doing(Pose("straight", "hips"), _clock),
    "ride": Doing(Pose("ride", "low")),
}
