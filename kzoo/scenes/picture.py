"""Draws the picture of a scene: everything its sentence says, and the sense of an ambiguous word.

Shapes are on whole pixels, without fonts or smoothing, so the picture is the same on every machine. What no
sentence says (skin, hair, some units of distance) is random, with a seed that does not depend on the sense of
an ambiguous word.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from random import Random
from zlib import crc32

import numpy as np
from PIL import Image, ImageFilter

from kzoo.scenes.background import background
from kzoo.scenes.drawn_actions import ACTIONS
from kzoo.scenes.drawn_animals import ANIMALS
from kzoo.scenes.drawn_people import Pose, draw_person, hand
from kzoo.scenes.drawn_senses import SENSES
from kzoo.scenes.drawn_things import THINGS
from kzoo.scenes.pen import COLOURS, GRID, INK, LILAC, PAPER, Pen
from kzoo.scenes.sampling import scenes
from kzoo.scenes.scene import AMBIGUOUS, PROFESSIONS, Entity, Scene

_DRAWN = {  # from a noun, with its sense if it has two, to its drawing function fn(pen, entity, pose, looks)
    **{key: lambda p, e, pose, looks, draw=draw: draw(p) for key, draw in (THINGS | SENSES).items()},
    **{key: lambda p, e, pose, looks, draw=draw: draw(p, e, pose.legs) for key, draw in ANIMALS.items()},
    **dict.fromkeys(("man", "woman", "boy", "girl", "child"), draw_person),
    **{f"{kind}/{sex}": draw_person for kind in PROFESSIONS for sex in ("male", "female")},
}
_SCALES = dict.fromkeys(("boy", "girl", "child"), 12) | dict.fromkeys(("horse", "cow", "camel", "donkey"), 20)
_SCALES |= dict.fromkeys(("chair", "table", "bicycle", "ladder", "car", "boat", "cart", "tree", "bench"), 20)
_SCALES |= dict.fromkeys(AMBIGUOUS, 21)
_ORIGIN = (32, 20)  # of a figure in its own drawing
_JUMP = 9  # units above the ground
_BEHIND = 12  # units by which something behind something else is raised


def pictures(split: str) -> np.ndarray:
    """Return the pictures of a split, in the order of `scenes(split)`.

    Args:
        split: "train", "val" or "test".

    Returns:
        uint8 `(N, 64, 64, 3)`, red, green and blue.

    Raises:
        UserError: no such split.

    Example:
        >>> pictures("test").shape
        (1000, 64, 64, 3)
    """
    return np.stack([draw(scene) for scene in scenes(split)])


def draw(scene: Scene) -> np.ndarray:
    """Return the picture of a scene.

    Args:
        scene: the scene.

    Returns:
        uint8 `(64, 64, 3)`, red, green and blue.

    Example:
        >>> draw(scenes("test")[0]).shape
        (64, 64, 3)
    """
    random = Random(_seed(scene))
    right = scene.subject.side == "right"  # arranged with the subject on the left, then mirrored
    image = background(scene.setting, scene.setting_size, scene.time, right).copy()
    for figure, x, y in _arrange(scene, random):
        corner = x - figure.x, GRID - y - figure.y
        image.paste(figure.rim_colour, corner, figure.rim)
        image.paste(figure.pixels, corner, figure.mask)
    return np.array(image.transpose(Image.Transpose.FLIP_LEFT_RIGHT) if right else image)


def _seed(scene: Scene) -> int:
    """Return a number that is the same for all readings of the scene's words."""
    parts = [scene.pattern, scene.setting, scene.setting_size, scene.time, scene.action, scene.relation]
    for entity in filter(None, (scene.subject, scene.object)):
        parts += [str(entity.count), entity.size, entity.colour, entity.clothing, entity.side]
    return crc32("|".join(parts).encode())


@dataclass(frozen=True)
class _Figure:
    """A cut-out drawing: its pixels, the mask of drawn pixels, the mask with a rim, and its origin."""

    pixels: Image.Image
    mask: Image.Image
    rim: Image.Image
    rim_colour: tuple[int, int, int]
    x: int
    y: int


@dataclass
class _Group:
    """The figures of one entity around (0, 0), each with its position, and their extent in units.

    The last is the foremost: the others cover what it has at its back.
    """

    members: list[tuple[_Figure, int, int]]
    scale: int
    left: int
    right: int
    height: int

    def at(self, x: int, y: int) -> list[tuple[_Figure, int, int]]:
        """Return the figures around another position, those farther back first."""
        nearer_first = sorted(self.members, key=lambda member: member[2])
        return [(figure, x + dx, y + dy) for figure, dx, dy in reversed(nearer_first)]


def _arrange(scene: Scene, random: Random) -> list[tuple[_Figure, int, int]]:
    """Return all figures with their positions, in drawing order."""
    doing, ground = ACTIONS[scene.action], 4 + int(random.random() * 4)
    subject = _group(scene.subject, doing.pose, random)
    if doing.place == "back":
        subject.left += 7
    if scene.object is None:
        x = max(subject.left + 1, 12 + int(random.random() * 8))
        return subject.at(x, ground) + _signs(doing, subject, x, ground)
    if scene.action == "ride":
        return _riding(scene, subject, ground, random)
    if scene.pattern == "beside":
        return _beside(scene, subject, ground, random)
    shared = scene.pattern in ("pair", "together")
    alike = shared or scene.action == "follow"
    other = _group(scene.object, doing.pose if alike else Pose(), random, not alike, doing.height > 20)
    if scene.action == "carry":
        x = max(subject.left, other.left) + 1 + int(random.random() * 6)
        return subject.at(x, ground) + other.at(x, ground + doing.height * subject.scale // 16)
    apart = 0 if scene.opening == "side" else GRID  # the caption puts both on this side
    gap = {"pair": apart, "together": 0}.get(scene.pattern, doing.gap)
    x, other_x = _side_by_side(subject, other, gap, random)
    figures = subject.at(x, ground)
    if shared:
        figures += other.at(other_x, ground) + _signs(doing, other, other_x, ground)
        return figures + _signs(doing, subject, x, ground)
    raised = other.at(other_x, ground + doing.height * subject.scale // 16)
    if doing.place == "between":
        middle = (x + subject.right + other_x - other.left) // 2
        figures.append((_sign(doing.sign), middle, ground + doing.sign_height))
    elif doing.place != "object":
        figures += _signs(doing, subject, x, ground)
    larger = other.height > subject.height
    figures = raised + figures if larger else figures + raised  # do not hide the smaller
    if doing.place == "object":
        figures.append((_sign(doing.sign), other_x, ground + other.height - 2))
    return figures


def _side_by_side(first: _Group, second: _Group, gap: int, random: Random) -> tuple[int, int]:
    """Return the positions of two groups: the first at the left edge, the second at most `gap` from it."""
    slack = GRID - 2 - first.left - first.right - second.left - second.right
    margin = int(random.random() * max(0, min(slack - gap, 6)))
    x = 1 + margin + first.left
    return x, min(x + first.right + gap + second.left, GRID - 1 - second.right)


def _riding(scene, rider, ground, random):
    mount = _group(scene.object, Pose(), random)
    x = mount.left + 1 + int(random.random() * 6)
    seat = ground + (13 * mount.scale - 4 * rider.scale) // 16
    return mount.at(x, ground) + rider.at(x - 1, seat)


def _beside(scene, subject, ground, random):
    landmark = _group(scene.object, Pose(), random)
    if scene.relation == "next to":
        x, other_x = _side_by_side(subject, landmark, 2, random)
        return landmark.at(other_x, ground) + subject.at(x, ground)
    x = max(subject.left, landmark.left) + 1 + int(random.random() * 6)
    if scene.relation == "in front of":
        return landmark.at(x + 3, ground + _BEHIND) + subject.at(x, ground - 3)
    return subject.at(x, ground + _BEHIND) + landmark.at(x + subject.right // 3 + landmark.left, ground)


def _group(entity: Entity, pose: Pose, random: Random, turned=False, row=False) -> _Group:
    """Draw an entity's one to three figures and place them: people in a row, others in a triangle.

    Args:
        turned: whether they face left.
        row: whether all are in a row.
    """
    person, n = _DRAWN[entity.key] is draw_person, entity.count
    scale = _SCALES.get(entity.kind, 16)
    if not person:
        scale = scale * {"small": 3, "big": 5}.get(entity.size, 4) // 4 * (16, 15, 14)[n - 1] // 16
        scale = min(scale, (28, 21, 19)[n - 1])  # otherwise they hide whoever looks at them
    plain = replace(entity, count=1, side="left", mentions=(), pronoun=False)  # one drawing for all of these
    figures = [_figure(plain, pose, int(random.random() * 4), scale, turned) for _ in range(n)]
    lying = person and pose.legs == "lie"
    wide = max(figure.pixels.width for figure in figures)
    high = max(figure.pixels.height for figure in figures)
    pitch = min(wide, 26 // n + 3 if person or row else 21)
    if lying:
        places = [(0, 9 * i) for i in range(n)]
    elif person or row or n < 3:
        places = [((2 * i - n + 1) * pitch // 2, 0) for i in range(n)]
    else:
        places = [(-pitch // 2, 0), (pitch // 2, 0), (0, high * 7 // 8)]
    if turned:
        places.reverse()
    up = _JUMP if pose.legs == "jump" else 0
    members = [(figure, dx, dy + up) for figure, (dx, dy) in zip(figures, places, strict=True)]
    left = max(figure.x - dx for figure, dx, dy in members)
    right = max(figure.pixels.width - figure.x + dx for figure, dx, dy in members)
    return _Group(members, scale, left, right, max(dy for _, _, dy in members) + high)


@lru_cache(maxsize=4096)
def _figure(entity: Entity, pose: Pose, looks: int, scale: int, turned: bool) -> _Figure:
    drawing = Image.new("RGBA", (GRID, GRID))
    pen = Pen(drawing, _ORIGIN, scale, COLOURS.get(entity.colour, LILAC))
    draw = _DRAWN[entity.key]
    draw(pen, entity, pose, looks)
    lying = draw is draw_person and pose.legs == "lie"
    return _cut_out(drawing, PAPER if max(pen.fill) < 60 else INK, lying, turned)


@lru_cache(maxsize=64)
def _sign(draw: Callable[[Pen], None]) -> _Figure:
    drawing = Image.new("RGBA", (GRID, GRID))
    draw(Pen(drawing, _ORIGIN, 16))
    return _cut_out(drawing, PAPER)


def _cut_out(drawing: Image.Image, rim_colour, lying=False, turned=False) -> _Figure:
    x, y = _ORIGIN[0], GRID - _ORIGIN[1]
    if lying:
        drawing = drawing.transpose(Image.Transpose.ROTATE_90)
    left, top, right, low = drawing.getchannel("A").getbbox()
    if lying:
        x, y = (left + right) // 2, low
    drawing = drawing.crop((left - 1, top - 1, right + 1, low + 1))
    x, y = x - left + 1, y - top + 1
    if turned:
        drawing, x = drawing.transpose(Image.Transpose.FLIP_LEFT_RIGHT), drawing.width - x
    mask = drawing.getchannel("A")
    return _Figure(drawing.convert("RGB"), mask, mask.filter(ImageFilter.MaxFilter(3)), rim_colour, x, y)


def _signs(doing, group: _Group, x: int, ground: int) -> list[tuple[_Figure, int, int]]:
    """Return the signs of an action that belong to the actor."""
    if not doing.sign:
        return []
    sign = _sign(doing.sign)
    if doing.place == "hand":
        hand_x, hand_y = (part * group.scale // 16 for part in hand(doing.pose))
        _, dx, dy = group.members[-1]  # for one only: it would hide the next one's face
        return [(sign, x + dx + hand_x, ground + dy + hand_y)]
    if doing.place == "back":
        return [(sign, x - group.left + 8, ground)]
    return [(sign, x, min(ground + group.height + 1, GRID - 11))]
