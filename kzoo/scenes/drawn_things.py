"""How things look: one small drawing per noun, about 16 units wide and high, with its bottom on y = 0."""

from kzoo.scenes.pen import GOLD, INK, LEAF, ORANGE, PAPER, PINK, STEEL, WATER, WOOD


def _ball(p):
    p.oval(-7, 0, 7, 14)
    p.line(-6, 7, 0, 5, 6, 7, colour=p.shade)
    p.line(0, 13, -2, 7, 0, 1, colour=p.shade)


def _book(p):
    p.box(-6, 0, 6, 15)
    p.box(-6, 0, -4, 15, p.shade)
    p.box(-1, 9, 4, 12, PAPER)
    p.box(-3, 0, 6, 1, PAPER)


def _bag(p):
    p.line(-3, 9, -3, 14, 3, 14, 3, 9, colour=p.shade, width=2)
    p.shape(-6, 10, 6, 10, 8, 0, -8, 0)
    p.box(-1, 6, 1, 8, p.shade)


def _umbrella(p):
    p.line(0, 12, 0, 1, 2, 0, 4, 2, colour=WOOD, width=2)
    p.shape(-9, 8, -7, 13, -3, 16, 3, 16, 7, 13, 9, 8, 6, 9, 3, 8, 0, 9, -3, 8, -6, 9)


def _guitar(p):
    p.box(-1, 8, 1, 17, WOOD)
    p.oval(-6, 0, 6, 8)
    p.oval(-4, 5, 4, 11)
    p.oval(-2, 4, 2, 7, INK)


def _kite(p):
    p.line(0, 4, -3, 2, 1, 0, colour=PINK, width=1)
    p.shape(0, 17, 6, 11, 0, 3, -6, 11)
    p.line(0, 17, 0, 3, colour=p.shade)
    p.line(-6, 11, 6, 11, colour=p.shade)


def _cup(p):
    p.ring(1, 3, 8, 10, width=2)
    p.box(-6, 0, 4, 12)
    p.box(-6, 11, 4, 12, p.shade)


def _basket(p):
    p.line(-6, 8, -4, 14, 4, 14, 6, 8, colour=WOOD, width=2)
    p.shape(-8, 9, 8, 9, 6, 0, -6, 0)
    for y in (2, 5, 8):
        p.line(-6, y, 6, y, colour=p.shade)


def _hat(p):
    p.oval(-9, 0, 9, 5)
    p.box(-5, 3, 5, 11)
    p.box(-5, 4, 5, 5, p.shade)


def _lamp(p):
    p.box(-1, 1, 1, 9, STEEL)
    p.box(-4, 0, 4, 1, STEEL)
    p.shape(-3, 16, 3, 16, 7, 8, -7, 8)


def _flower(p):
    p.line(0, 8, 0, 0, colour=LEAF, width=2)
    p.line(0, 3, 4, 6, colour=LEAF, width=2)
    for x, y in ((-5, 9), (0, 9), (-5, 14), (0, 14)):
        p.oval(x, y - 3, x + 5, y + 2)
    p.oval(-2, 9, 2, 13, ORANGE)


def _apple(p):
    p.line(0, 10, 1, 15, colour=WOOD, width=1)
    p.oval(1, 12, 6, 15, LEAF)
    p.oval(-7, 0, 2, 12)
    p.oval(-2, 0, 7, 12)


def _alarm_clock(p):
    p.oval(-7, 10, -2, 15)
    p.oval(2, 10, 7, 15)
    p.oval(-7, 0, 7, 13)
    p.oval(-4, 3, 4, 10, PAPER)
    p.line(0, 9, 0, 6, 3, 6, colour=INK)


def _bottle(p):
    p.box(-1, 10, 1, 15)
    p.box(-1, 15, 1, 17, WOOD)
    p.shape(-4, 0, 4, 0, 4, 9, 1, 12, -1, 12, -4, 9)
    p.box(-4, 3, 4, 6, PAPER)


def _drum(p):
    p.line(-9, 16, 0, 11, colour=WOOD)
    p.line(9, 16, 0, 11, colour=WOOD)
    p.box(-7, 1, 7, 10)
    p.line(-7, 1, -3, 9, 0, 1, 3, 9, 7, 1, colour=p.shade)
    p.oval(-7, 8, 7, 12, PAPER)


def _flag(p):
    p.box(-7, 0, -6, 17, WOOD)
    p.shape(-5, 16, 0, 15, 4, 17, 8, 16, 8, 8, 4, 9, 0, 7, -5, 8)


def _picture(p):
    p.box(-8, 0, 8, 14)
    p.box(-6, 2, 6, 12, WATER)
    p.shape(-6, 2, 6, 2, 6, 4, 2, 8, -1, 4, -3, 6, -6, 3, colour=LEAF)


def _key(p):
    p.ring(-9, 4, -1, 12, width=2)
    p.box(-1, 7, 9, 9)
    p.box(4, 4, 5, 7)
    p.box(7, 4, 8, 7)


def _candle(p):
    p.shape(0, 17, 2, 13, 0, 11, -2, 13, colour=ORANGE)
    p.box(-2, 1, 2, 11)
    p.box(-5, 0, 5, 1, GOLD)


def _bucket(p):
    p.ring(-6, 5, 6, 17, STEEL, 1)
    p.shape(-7, 11, 7, 11, 5, 0, -5, 0)
    p.box(-7, 10, 7, 11, p.shade)


def _camera(p):
    p.box(-8, 0, 8, 10)
    p.box(-3, 10, 3, 12)
    p.oval(-4, 1, 4, 9, p.shade)
    p.oval(-2, 3, 2, 7, WATER)
    p.box(5, 8, 7, 9, ORANGE)


def _plate(p):
    p.oval(-9, 2, 9, 12)
    p.ring(-5, 4, 5, 10, p.shade, 1)


def _spoon(p):
    p.oval(-4, 9, 4, 17)
    p.box(-1, 0, 1, 9)
    p.oval(-1, 11, 1, 15, p.shade)


def _brush(p):
    for x in range(-8, 3, 2):
        p.line(x, 1, x, 6, colour=PAPER, width=1)
    p.box(-8, 5, 2, 9)
    p.box(2, 6, 9, 8)


def _box(p):
    p.shape(-7, 10, -4, 14, 9, 14, 6, 10, colour=p.shade)
    p.box(-8, 0, 6, 10)
    p.box(-2, 6, 0, 10, PAPER)


def _chair(p):
    p.box(-6, 0, -5, 16)
    p.box(-6, 12, -3, 16)
    p.box(-6, 6, 6, 8)
    p.box(5, 0, 6, 8)


def _table(p):
    p.box(-10, 9, 10, 11)
    p.box(-8, 0, -7, 10)
    p.box(7, 0, 8, 10)


def _bicycle(p):
    p.ring(-10, 0, -2, 8, INK, 1)
    p.ring(2, 0, 10, 8, INK, 1)
    p.line(-6, 4, -3, 10, 4, 10, 0, 4, -6, 4, width=1)
    p.line(0, 4, -3, 10, -5, 12, -2, 12, width=1)
    p.line(6, 4, 4, 12, 7, 13, width=1)


def _ladder(p):
    p.line(-4, 0, -2, 20, width=2)
    p.line(5, 0, 3, 20, width=2)
    for y in (3, 7, 11, 15, 18):
        p.box(-3, y, 3, y)


def _car(p):
    p.shape(-6, 7, -4, 12, 3, 12, 6, 7)
    p.box(-10, 3, 10, 8)
    p.shape(-4, 8, -3, 11, 0, 11, 0, 8, colour=WATER)
    p.shape(1, 8, 1, 11, 3, 11, 5, 8, colour=WATER)
    p.oval(-8, 0, -3, 5, INK)
    p.oval(3, 0, 8, 5, INK)


def _boat(p):
    p.box(-1, 5, 0, 19, WOOD)
    p.shape(1, 18, 1, 7, 8, 7, colour=PAPER)
    p.shape(-11, 6, 11, 6, 7, 0, -7, 0)


def _cart(p):
    p.line(6, 8, 12, 11, colour=WOOD, width=1)
    p.shape(-9, 11, 8, 11, 6, 4, -7, 4)
    p.line(-8, 8, 7, 8, colour=p.shade)
    p.ring(-4, 0, 3, 6, INK, 2)


def _tree(p):
    p.box(-2, 0, 1, 9, WOOD)
    p.oval(-8, 7, 8, 18)
    p.oval(-5, 12, 5, 22)


def _bench(p):
    p.box(-9, 0, -7, 7, INK)
    p.box(7, 0, 9, 7, INK)
    p.box(-11, 5, 11, 7)
    p.box(-11, 9, 11, 12)


THINGS = {
    "ball": _ball,
    "book": _book,
    "bag": _bag,
    "umbrella": _umbrella,
    "guitar": _guitar,
    "kite": _kite,
    "cup": _cup,
    "basket": _basket,
    "hat": _hat,
    "lamp": _lamp,
    "flower": _flower,
    "apple": _apple,
    "alarm clock": _alarm_clock,
    "bottle": _bottle,
    "drum": _drum,
    "flag": _flag,
    "picture": _picture,
    "key": _key,
    "candle": _candle,
    "bucket": _bucket,
    "camera": _camera,
    "plate": _plate,
    "spoon": _spoon,
    "brush": _brush,
    "box": _box,
    "chair": _chair,
    "table": _table,
    "bicycle": _bicycle,
    "ladder": _ladder,
    "car": _car,
    "boat": _boat,
    "cart": _cart,
    "tree": _tree,
    "bench": _bench,
}
