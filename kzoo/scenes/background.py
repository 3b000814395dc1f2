"""The background of a scene: its place, the place's size and age, the time of day and the weather."""

from functools import lru_cache

from PIL import Image

from kzoo.scenes.drawn_places import PLACES
from kzoo.scenes.pen import GRID, INK, PAPER, SNOW, SUN, Pen

HORIZON = 26
_SCALES = {"": 16, "old": 16, "small": 10, "big": 22}  # of a place's landmark

_SKIES = {
    "day": (176, 214, 244),
    "morning": (252, 216, 190),
    "noon": (128, 196, 250),
    "evening": (240, 156, 108),
    "night": (44, 48, 92),
    "sun": (96, 184, 255),
    "wind": (196, 214, 226),
    "cold": (208, 240, 250),
    "rain": (142, 152, 166),
    "snow": (214, 218, 226),
    "fog": (206, 206, 204),
}
_MIST = (222, 222, 220)


@lru_cache(maxsize=2048)
def background(setting: str, setting_size: str, time: str, mirrored: bool = False) -> Image.Image:
    """Return the picture of an empty place.

    Args:
        setting: one of `PLACES`.
        setting_size: "", "small", "big" or "old".
        time: time of day or weather, as in `Scene`.
        mirrored: whether to swap left and right. Defaults to `False`.
    """
    ground, wall, landmark = PLACES[setting]
    image = Image.new("RGB", (GRID, GRID), wall or _SKIES[time])
    p = Pen(image, (0, 0), 16)
    if wall:
        p.box(2, 42, 16, 62, PAPER)
        p.box(3, 43, 15, 61, _SKIES[time])
        _light(Pen(image, (3, 43), 3), time)
        p.box(9, 43, 9, 61, PAPER)
    else:
        _light(p, time)
    p.box(0, 0, 63, HORIZON - 1, SNOW if time == "snow" else ground)
    landmark(Pen(image, (32, HORIZON), _SCALES[setting_size]))
    if setting_size == "old":
        _cracks(p)
    if not wall:
        _weather(p, time)
    return image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if mirrored else image


def _light(p, time):
    """Draw sun, moon, stars and clouds on a sky of 64 by 64 units."""
    if time == "morning":
        p.oval(2, 28, 16, 42, SUN)
    elif time in ("noon", "sun"):
        p.oval(24, 48, 38, 62, SUN)
    elif time == "evening":
        p.oval(46, 26, 62, 42, (216, 60, 40))
    elif time == "night":
        p.oval(48, 48, 60, 60, SUN)
        p.oval(45, 50, 56, 61, _SKIES[time])
        for x, y in ((6, 58), (18, 50), (28, 60), (38, 54), (10, 44), (58, 40), (24, 40)):
            p.box(x, y, x, y, SUN)


def _weather(p, time):
    if time == "sun":
        for x, y, to_x, to_y in ((14, 55, 21, 55), (41, 55, 48, 55), (18, 46, 23, 50), (44, 46, 39, 50)):
            p.line(x, y, to_x, to_y, colour=SUN, width=2)
    elif time == "wind":
        for x, y in ((2, 58), (26, 52), (8, 44), (40, 60), (36, 38)):
            p.line(x, y, x + 14, y, x + 17, y + 2, x + 15, y + 4, colour=SNOW)
    elif time == "cold":
        for x in range(1, 64, 6):
            p.shape(x - 2, 63, x + 2, 63, x, 54 + x % 4, colour=(150, 200, 240))
        for x, y in ((10, 44), (32, 46), (54, 44)):
            p.line(x - 4, y, x + 4, y, colour=(110, 170, 230))
            p.line(x - 2, y - 4, x + 2, y + 4, colour=(110, 170, 230))
            p.line(x - 2, y + 4, x + 2, y - 4, colour=(110, 170, 230))
    elif time == "rain":
        for x in (4, 22, 42):
            p.oval(x, 55, x + 20, 63, (96, 104, 120))
        for i in range(30):
            x, y = i * i * 23 % 61 + i % 4, i * 37 % 54
            p.line(x, y, x - 2, y + 4, colour=(70, 110, 190))
    elif time == "snow":
        for i in range(46):
            x, y = i * i * 29 % 61 + i % 4, i * 41 % 64
            p.box(x, y, x + 1, y + 1, SNOW)
    elif time == "fog":
        for y in range(1, 62, 4):
            p.box(y * 7 % 9, y, 63 - y * 5 % 11, y, _MIST)


def _cracks(p):
    for x, y in ((14, 46), (34, 52), (46, 40)):
        p.line(x, y, x + 3, y - 4, x + 1, y - 7, x + 5, y - 12, x + 3, y - 15, colour=INK)
