"""A pen that draws flat shapes on whole pixels, and the colours that all pictures share.

The drawings of things, creatures and settings use it; `kzoo.scenes.picture` combines them.
"""

from PIL import Image, ImageDraw

GRID = 64  # pixels that a picture is wide and high
UNITS = 16  # of a drawing, in the length given by its scale

COLOURS = {
    "red": (214, 36, 40),
    "blue": (38, 80, 220),
    "green": (20, 140, 52),
    "yellow": (250, 212, 30),
    "white": (250, 250, 250),
    "black": (22, 22, 22),
    "brown": (128, 74, 34),
    "grey": (134, 134, 134),
}
# Colours of what has no colour in the text; none is one of the above.
INK = (34, 34, 44)
PAPER = (240, 238, 226)
ORANGE = (242, 140, 30)
PINK = (246, 160, 180)
PURPLE = (176, 40, 240)
NAVY = (24, 48, 96)
LILAC = (176, 150, 206)
WOOD = (166, 116, 66)
LEAF = (70, 132, 62)
STEEL = (160, 170, 182)
GOLD = (228, 184, 60)
WATER = (108, 168, 224)
SUN = (255, 236, 110)
SNOW = (255, 255, 255)
ROSE = (255, 60, 200)  # of one sense of each ambiguous English noun, and of nothing else
TURQUOISE = (0, 225, 215)  # of the other sense


class Pen:
    """Draws on a picture in its own units, `x` to the right and `y` up from an origin.

    Every corner is a whole pixel and nothing is smoothed, so that all machines draw the same.

    Args:
        image: the picture, `GRID` pixels wide and high.
        origin: position of the drawing's (0, 0), in pixels from the picture's lower left corner.
        scale: length of 16 units, in pixels.
        fill: RGB of shapes whose colour is not given.
    """

    def __init__(
        self, image: Image.Image, origin: tuple[int, int], scale: int, fill: tuple[int, int, int] = INK
    ):
        self.fill = fill
        self.lift = 0  # units by which everything drawn from now on is raised
        self._draw = ImageDraw.Draw(image)
        self._x, self._y = origin
        self._scale = scale

    @property
    def shade(self) -> tuple[int, int, int]:
        """The colour of details: darker than `fill`, or lighter if that is nearly black."""
        if max(self.fill) < 60:
            return (96, 96, 104)
        return tuple(part * 9 // 16 for part in self.fill)

    def box(self, left, low, right, high, colour=None):
        """Fill the rectangle between two corners."""
        self._draw.rectangle([*self._at(left, high), *self._at(right, low)], colour or self.fill)

    def oval(self, left, low, right, high, colour=None):
        """Fill the ellipse that touches a rectangle's sides."""
        self._draw.ellipse([*self._at(left, high), *self._at(right, low)], colour or self.fill)

    def ring(self, left, low, right, high, colour=None, width=2):
        """Draw an ellipse's outline."""
        box = [*self._at(left, high), *self._at(right, low)]
        self._draw.ellipse(box, None, colour or self.fill, self._width(width))

    def shape(self, *numbers, colour=None):
        """Fill the polygon x, y, x, y …"""
        # Row by row: Pillow 10 and 11 fill some hollow polygons differently.
        points, colour = self._points(numbers), colour or self.fill
        rim = [*points, points[0]]
        for row in range(min(y for _, y in points), max(y for _, y in points)):
            crossed = sorted(
                x + (row - y) * (next_x - x) // (next_y - y)
                for (x, y), (next_x, next_y) in zip(rim[:-1], rim[1:], strict=True)
                if min(y, next_y) <= row < max(y, next_y)
            )
            for left, right in zip(crossed[::2], crossed[1::2], strict=True):
                self._draw.rectangle([left, row, right, row], colour)
        self._draw.line(rim, colour)

    def line(self, *numbers, colour=None, width=1):
        """Draw the line x, y, x, y …"""
        self._draw.line(self._points(numbers), colour or self.fill, self._width(width))

    def _points(self, numbers):
        return [self._at(x, y) for x, y in zip(numbers[::2], numbers[1::2], strict=True)]

    def _at(self, x, y):
        x = self._x * UNITS + x * self._scale
        y = (GRID - self._y) * UNITS - (y + self.lift) * self._scale
        return (x + UNITS // 2) // UNITS, (y + UNITS // 2) // UNITS - 1

    def _width(self, units):
        return max(1, (units * self._scale + UNITS // 2) // UNITS)
