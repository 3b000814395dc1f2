"""The landmark of each place, drawn around (0, 0) on the horizon, 64 units wide and up to 34 high."""

from kzoo.scenes.pen import GOLD, INK, LEAF, PAPER, PINK, SNOW, STEEL, SUN, WATER, WOOD

GRASS, SAND, EARTH, STONE = (168, 208, 128), (238, 220, 164), (198, 164, 112), (200, 198, 194)
ROOF, WALL, TILE = (190, 92, 78), (226, 206, 176), (216, 226, 230)


def _trees(p, places):
    for x in places:
        p.box(x - 1, 0, x, 7, WOOD)
        p.shape(x - 6, 5, x + 5, 5, x, 20, colour=LEAF)


def _park(p):
    p.shape(-4, 0, 4, 0, 14, -26, -10, -26, colour=SAND)
    for x in (-26, 18):
        p.box(x - 1, 0, x + 1, 6, WOOD)
        p.oval(x - 7, 5, x + 7, 18, LEAF)
    p.line(3, 0, 3, 14, colour=INK)
    p.oval(1, 13, 5, 17, SUN)


def _street(p):
    for x, height, colour in ((-30, 22, ROOF), (-16, 15, WALL), (2, 26, STONE), (18, 18, ROOF)):
        p.box(x, 0, x + 12, height, colour)
        for y in range(3, height - 3, 6):
            p.box(x + 2, y, x + 4, y + 3, INK)
            p.box(x + 8, y, x + 10, y + 3, INK)
    for x in range(-32, 32, 12):
        p.box(x, -14, x + 6, -12, PAPER)


def _beach(p):
    p.box(-32, -8, 31, 0, WATER)
    p.line(-32, -8, -20, -10, -8, -8, 8, -10, 20, -8, 31, -10, colour=PAPER, width=2)
    p.line(20, -6, 20, 12, colour=WOOD, width=1)
    p.shape(8, 10, 20, 18, 32, 10, colour=PINK)


def _garden(p):
    for x in range(-31, 32, 6):
        p.shape(x, 0, x + 3, 0, x + 3, 8, x + 1, 10, x, 8, colour=PAPER)
    p.box(-32, 4, 31, 5, PAPER)
    for x in range(-30, 31, 7):
        p.box(x, -6, x, -2, LEAF)
        p.oval(x - 2, -3, x + 2, 1, PINK if x % 2 else GOLD)


def _forest(p):
    _trees(p, range(-30, 32, 10))
    _trees(p, range(-25, 32, 10))


def _meadow(p):
    p.oval(-40, -12, 4, 8, (150, 196, 110))
    p.oval(-4, -12, 44, 6, (158, 202, 118))
    for i in range(24):
        x, y = i * 17 % 62 - 31, -(i * 11 % 24) - 2
        p.box(x, y, x + 1, y + 1, (PINK, GOLD, PAPER)[i % 3])


def _field(p):
    for x in range(-60, 64, 12):
        p.shape(x // 4, 0, x // 4 + 1, 0, x + 4, -26, x, -26, colour=(160, 122, 74))
    for x in range(-30, 31, 4):
        p.line(x, 0, x, 5, colour=GOLD)


def _bridge(p):
    p.box(-32, -10, 31, 0, WATER)
    p.box(-32, -26, 31, -8, STONE)
    for x in (-22, 0, 22):
        p.box(x - 1, -8, x + 1, 20, STEEL)
    p.line(-32, 12, -22, 20, -11, 8, 0, 20, 11, 8, 22, 20, 32, 12, colour=STEEL, width=2)
    p.box(-32, -2, 31, 0, STEEL)


def _market(p):
    for x in (-29, 3):
        p.box(x, 0, x + 26, 6, WOOD)
        for i in range(4):
            p.oval(x + 2 + 6 * i, 5, x + 6 + 6 * i, 9, (GOLD, PINK, LEAF)[i % 3])
        for i in range(6):
            colour = ROOF if i % 2 else PAPER
            p.shape(x + 4 * i, 14, x + 4 * i + 4, 14, x + 4 * i + 4, 21, x + 4 * i, 21, colour=colour)
        p.box(x, 0, x, 14, INK)
        p.box(x + 25, 0, x + 25, 14, INK)


def _playground(p):
    p.line(-28, 0, -24, 20, -6, 20, -2, 0, colour=ROOF, width=2)
    p.line(-19, 20, -19, 6, -12, 6, -12, 20, colour=INK)
    p.box(8, 0, 9, 18, GOLD)
    p.box(14, 0, 15, 18, GOLD)
    p.shape(14, 18, 17, 18, 31, 0, 28, 0, colour=GOLD)


def _square(p):
    for y in range(-24, 0, 6):
        p.box(-32, y, 31, y, STEEL)
        for x in range(-32, 32, 8):
            p.box(x + y % 4, y, x + y % 4, y + 5, STEEL)
    p.oval(-14, -3, 14, 4, STEEL)
    p.oval(-11, 0, 11, 3, WATER)
    p.box(-1, 2, 1, 13, STEEL)
    p.line(-8, 4, -5, 17, 0, 13, 5, 17, 8, 4, colour=WATER, width=2)


def _river(p):
    p.shape(-4, 0, 4, 0, 10, -8, -6, -14, 20, -26, -16, -26, -30, -14, -6, -7, colour=WATER)
    p.oval(-34, -3, -8, 9, LEAF)
    p.oval(12, -3, 36, 12, LEAF)


def _lake(p):
    p.oval(-30, -14, 30, -1, WATER)
    p.line(-16, -6, -8, -6, colour=PAPER)
    p.line(4, -9, 14, -9, colour=PAPER)
    _trees(p, (-28, -22, 24))


def _station(p):
    p.box(-32, -8, 31, -7, INK)
    p.box(-32, -3, 31, -2, INK)
    for x in range(-32, 32, 5):
        p.box(x, -9, x + 1, -1, WOOD)
    p.box(-30, 0, 20, 15, ROOF)
    p.box(-30, 13, 20, 16, STEEL)
    for x in range(-27, 18, 9):
        p.box(x, 6, x + 5, 11, TILE)
    p.oval(22, 14, 31, 23, PAPER)
    p.line(26, 21, 26, 18, 29, 18, colour=INK)
    p.box(26, 0, 27, 13, INK)


def _farm(p):
    p.box(-22, 0, 4, 13, ROOF)
    p.shape(-24, 13, -18, 21, 0, 21, 6, 13, colour=INK)
    p.box(-13, 0, -5, 9, PAPER)
    p.line(-13, 0, -5, 9, colour=ROOF)
    p.line(-13, 9, -5, 0, colour=ROOF)
    p.box(10, 0, 18, 22, STEEL)
    p.oval(10, 18, 18, 27, STEEL)


def _yard(p):
    p.box(-14, 0, 14, 14, WALL)
    p.shape(-17, 14, 0, 25, 17, 14, colour=ROOF)
    p.box(-3, 0, 3, 9, WOOD)
    p.box(-11, 5, -6, 10, WATER)
    p.box(6, 5, 11, 10, WATER)
    for x in (*range(-32, -15, 5), *range(18, 32, 5)):
        p.box(x, 0, x + 2, 9, WOOD)
    p.box(-32, 5, -15, 6, WOOD)
    p.box(16, 5, 31, 6, WOOD)


def _mountain(p):
    for x, height in ((-18, 24), (16, 20), (0, 30)):
        p.shape(x - 16, 0, x + 16, 0, x, height, colour=(146, 140, 150))
        p.shape(x - 4, height - 7, x + 4, height - 7, x, height, colour=SNOW)


def _kitchen(p):
    p.box(-12, 0, 30, 12, PAPER)
    p.box(-12, 11, 30, 13, STEEL)
    p.box(2, 1, 14, 9, INK)
    p.oval(3, 12, 7, 14, ROOF)
    p.oval(9, 12, 13, 14, ROOF)
    p.shape(2, 22, 14, 22, 11, 34, 5, 34, colour=STEEL)
    p.box(18, 22, 30, 34, WOOD)


def _living_room(p):
    p.box(-12, 0, 24, 7, ROOF)
    p.box(-8, 5, 20, 15, ROOF)
    p.oval(-15, 0, -8, 11, ROOF)
    p.oval(20, 0, 27, 11, ROOF)
    p.box(0, 21, 14, 31, GOLD)
    p.box(2, 23, 12, 29, LEAF)
    p.oval(-24, -16, 24, -4, PINK)


def _library(p):
    p.box(-13, 0, 31, 33, WOOD)
    for row, y in enumerate((2, 12, 22)):
        p.box(-12, y, 30, y + 7, INK)
        for i, x in enumerate(range(-11, 29, 3)):
            p.box(x, y, x + 1, y + 6 - i % 3, (ROOF, GOLD, LEAF, WATER)[(i + row) % 4])


def _café(p):
    p.box(-13, 26, 30, 34, INK)
    p.line(-9, 31, 20, 31, colour=PAPER)
    p.line(-9, 28, 8, 28, colour=PAPER)
    for x in (-4, 20):
        p.oval(x - 9, 7, x + 9, 12, PAPER)
        p.box(x - 1, -3, x, 8, INK)
        p.box(x - 2, 11, x + 2, 15, WATER)


def _classroom(p):
    p.box(-13, 8, 30, 32, WOOD)
    p.box(-12, 10, 29, 31, (42, 92, 74))
    p.line(-8, 26, 6, 26, colour=PAPER)
    p.line(-8, 21, 12, 21, colour=PAPER)
    p.shape(14, 14, 24, 14, 19, 24, colour=PAPER)


def _shop(p):
    for y in (12, 21, 30):
        p.box(-12, y, 30, y + 1, WOOD)
        for i, x in enumerate(range(-10, 28, 6)):
            p.oval(x, y + 2, x + 4, y + 6, (PINK, GOLD, WATER, LEAF)[(i + y) % 4])
    p.box(-12, -4, 30, 7, WOOD)
    p.box(18, 7, 26, 12, INK)


def _garage(p):
    p.box(-12, 0, 20, 34, STEEL)
    for y in range(4, 34, 5):
        p.box(-12, y, 20, y, INK)
    for y in (0, 6, 12):
        p.oval(22, y, 31, y + 6, INK)
        p.oval(25, y + 2, 28, y + 4, STEEL)


def _museum(p):
    for x in (-13, 26):
        p.box(x, 0, x + 5, 34, PAPER)
        p.box(x - 1, 0, x + 6, 2, STEEL)
        p.box(x - 1, 32, x + 6, 34, STEEL)
    p.box(-2, 14, 20, 30, GOLD)
    p.box(0, 16, 18, 28, LEAF)
    p.oval(5, 18, 13, 27, PINK)
    p.box(-4, 0, -4, 7, ROOF)
    p.box(22, 0, 22, 7, ROOF)
    p.line(-4, 7, 9, 4, 22, 7, colour=ROOF, width=1)


def _office(p):
    p.box(-10, 8, 28, 10, WOOD)
    p.box(-9, -4, -7, 8, WOOD)
    p.box(25, -4, 27, 8, WOOD)
    p.box(-2, 13, 16, 26, INK)
    p.box(0, 15, 14, 24, WATER)
    p.box(6, 10, 8, 13, INK)
    p.box(19, 10, 26, 13, PAPER)


PLACES = {  # ground, wall of a room, landmark
    "park": (GRASS, None, _park),
    "street": ((150, 150, 156), None, _street),
    "beach": (SAND, None, _beach),
    "garden": ((136, 186, 104), None, _garden),
    "forest": ((122, 164, 96), None, _forest),
    "meadow": (GRASS, None, _meadow),
    "field": (EARTH, None, _field),
    "bridge": (STONE, None, _bridge),
    "market": (STONE, None, _market),
    "playground": (SAND, None, _playground),
    "square": (STONE, None, _square),
    "river": (GRASS, None, _river),
    "lake": (GRASS, None, _lake),
    "station": ((176, 172, 168), None, _station),
    "farm": (EARTH, None, _farm),
    "yard": (GRASS, None, _yard),
    "mountain": ((170, 176, 150), None, _mountain),
    "kitchen": (TILE, (246, 236, 200), _kitchen),
    "living room": (EARTH, (222, 214, 232), _living_room),
    "library": ((182, 150, 120), (236, 224, 200), _library),
    "café": ((204, 180, 150), (200, 222, 206), _café),
    "classroom": ((222, 206, 170), (230, 238, 240), _classroom),
    "shop": (TILE, (250, 222, 210), _shop),
    "garage": ((170, 170, 172), (214, 214, 210), _garage),
    "museum": ((214, 200, 204), (206, 194, 206), _museum),
    "office": ((178, 190, 204), (226, 230, 222), _office),
}
