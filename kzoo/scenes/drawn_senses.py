"""How the two senses of each ambiguous noun look: as different as possible, at any size and in any colour.

Besides the outlines, one sense of each noun has parts in `ROSE` and the other in `TURQUOISE`. Women and men
of a profession have these colours too, and nothing else does: a small network that had seen each noun 200
times recognized 75 of 100 new ones by their outlines, 99 with these parts.
Each drawing is about 24 units wide and 18 high, with its bottom on y = 0.
"""

from kzoo.scenes.pen import INK, PAPER, ROSE, TURQUOISE


def _bat_club(p):
    p.shape(-5, 2, -3, 1, 9, 12, 8, 16, 4, 16, -4, 4)
    p.line(-8, 0, -2, 6, colour=TURQUOISE, width=4)
    p.line(1, 10, 5, 6, colour=TURQUOISE, width=2)


def _bat_animal(p):
    p.shape(-3, 12, -2, 17, 0, 13, 2, 17, 3, 12)
    p.shape(-2, 11, -8, 15, -13, 12, -12, 4, -9, 7, -6, 3, -4, 7, -2, 3)
    p.shape(2, 11, 8, 15, 13, 12, 12, 4, 9, 7, 6, 3, 4, 7, 2, 3)
    p.shape(-4, 10, -8, 13, -11, 11, -11, 8, -8, 9, -5, 7, colour=ROSE)
    p.shape(4, 10, 8, 13, 11, 11, 11, 8, 8, 9, 5, 7, colour=ROSE)
    p.oval(-3, 2, 3, 14)
    p.oval(-2, 3, 2, 7, ROSE)
    p.box(-2, 10, -1, 11, PAPER)
    p.box(1, 10, 2, 11, PAPER)


def _crane_machine(p):
    p.box(-8, 0, 0, 2, INK)
    p.box(-6, 2, -2, 22)
    for y in range(3, 20, 3):
        p.line(-6, y, -2, y + 2, colour=p.shade)
    p.box(-9, 18, 12, 20)
    p.box(-11, 13, -7, 20, TURQUOISE)
    p.box(9, 9, 9, 18, INK)
    p.box(6, 4, 12, 10, TURQUOISE)


def _crane_bird(p):
    p.line(-2, 7, -3, 0, colour=ROSE, width=2)
    p.line(2, 7, 2, 0, colour=ROSE, width=2)
    p.line(4, 11, 6, 15, 4, 18, 6, 20, width=2)
    p.oval(-8, 6, 6, 13)
    p.shape(-3, 11, -12, 7, -5, 6, colour=ROSE)
    p.oval(3, 18, 9, 23)
    p.shape(8, 22, 16, 19, 8, 18, colour=ROSE)
    p.box(6, 20, 7, 21, INK)


def _mouse_device(p):
    p.line(0, 13, 2, 16, 7, 15, 10, 18, colour=TURQUOISE, width=2)
    p.oval(-6, 0, 6, 14)
    p.line(0, 7, 0, 13, colour=p.shade)
    p.box(-6, 6, 6, 7, TURQUOISE)
    p.box(-1, 9, 1, 12, TURQUOISE)


def _mouse_animal(p):
    p.line(-7, 2, -11, 3, -12, 8, -9, 10, colour=ROSE, width=2)
    p.oval(-9, 0, 6, 9)
    p.shape(2, 9, 11, 3, 4, 0)
    p.oval(-3, 6, 5, 14)
    p.oval(-1, 8, 3, 12, ROSE)
    p.box(6, 5, 7, 6, INK)
    p.oval(9, 1, 13, 5, ROSE)


def _seal_stamp(p):
    p.oval(-3, 10, 3, 17, TURQUOISE)
    p.box(-1, 6, 1, 11, TURQUOISE)
    p.box(-6, 2, 6, 8)
    p.box(-8, 0, 8, 1, TURQUOISE)


def _seal_animal(p):
    p.shape(-9, 3, -14, 7, -13, 0, -9, 0, colour=ROSE)
    p.oval(-11, 0, 6, 7)
    p.shape(0, 6, 3, 13, 9, 11, 7, 0)
    p.oval(2, 8, 11, 15)
    p.shape(2, 4, -3, 0, 7, 0, colour=ROSE)
    p.box(6, 11, 7, 12, PAPER)
    p.oval(9, 8, 13, 12, ROSE)


def _trunk_box(p):
    p.oval(-9, 3, 9, 14)
    p.box(-9, 0, 9, 9)
    p.box(-9, 8, 9, 9, p.shade)
    p.box(-7, 0, -5, 12, TURQUOISE)
    p.box(5, 0, 7, 12, TURQUOISE)
    p.box(-2, 5, 2, 9, TURQUOISE)


def _trunk_tree(p):
    p.shape(-4, 18, 4, 18, 4, 4, 8, 0, -8, 0, -4, 4)
    p.shape(3, 8, 9, 13, 8, 15, 3, 11)
    p.oval(-4, 16, 4, 20, PAPER)
    p.ring(-2, 17, 2, 19, ROSE, 1)
    p.line(-1, 14, -1, 3, colour=p.shade)
    p.oval(6, 12, 12, 18, ROSE)
    p.oval(-8, 7, -3, 12, ROSE)


def _pipe_smoking(p):
    p.line(0, 2, 6, 3, 12, 9, width=2)
    p.shape(-7, 8, 1, 8, 2, 2, -1, 0, -5, 0)
    p.box(-6, 7, 0, 9, ROSE)
    p.oval(-5, 10, 0, 15, ROSE)
    p.oval(-1, 15, 5, 21, ROSE)


def _pipe_tube(p):
    p.box(-12, 5, 10, 10)
    p.box(-12, 3, -9, 12, TURQUOISE)
    p.box(5, 3, 8, 12, TURQUOISE)
    p.box(-9, 8, 5, 8, p.shade)
    p.oval(8, 4, 13, 11, p.shade)
    p.oval(9, 5, 12, 10, INK)


def _bow_weapon(p):
    p.line(-1, 19, 6, 15, 8, 9, 6, 3, -1, -1, width=3)
    p.line(-1, 18, -1, 0, colour=INK)
    p.line(-9, 9, 11, 9, colour=TURQUOISE, width=2)
    p.shape(15, 9, 9, 13, 9, 5, colour=TURQUOISE)


def _bow_ribbon(p):
    p.shape(0, 8, -5, 0, -9, 1, -1, 9)
    p.shape(0, 8, 5, 0, 9, 1, 1, 9)
    p.shape(0, 9, -11, 16, -11, 4)
    p.shape(0, 9, 11, 16, 11, 4)
    p.oval(-9, 8, -6, 12, ROSE)
    p.oval(6, 8, 9, 12, ROSE)
    p.oval(-3, 6, 3, 12, ROSE)


SENSES = {
    "bat/club": _bat_club,
    "bat/animal": _bat_animal,
    "crane/machine": _crane_machine,
    "crane/bird": _crane_bird,
    "mouse/device": _mouse_device,
    "mouse/animal": _mouse_animal,
    "seal/stamp": _seal_stamp,
    "seal/animal": _seal_animal,
    "trunk/box": _trunk_box,
    "trunk/tree": _trunk_tree,
    "pipe/smoking": _pipe_smoking,
    "pipe/tube": _pipe_tube,
    "bow/weapon": _bow_weapon,
    "bow/ribbon": _bow_ribbon,
}
