"""Draws characters as small bitmaps for the glyph encoder."""

import contextlib
import functools
import os
import warnings
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from kzoo.errors import UserError

NOWHERE = "\U0010ffff"  # not a character: every font draws its box for missing characters


def render_glyphs(
    characters: Sequence[str], size: int = 22, font: str | os.PathLike | None = None
) -> np.ndarray:
    """Draw characters as binary bitmaps.

    The font size is the bitmap's size. Characters that do not fit are drawn smaller; all are centred.
    Characters that the font lacks get its box for missing characters, with a warning that names them. Special
    tokens such as `<pad>` are blank.

    Args:
        characters: a vocabulary, or a `str`.
        size: int. Height and width in pixels. Defaults to `22`, the paper's.
        font: path of a TTF, OTF or TTC file. From a collection, the Simplified Chinese face is used, or else
            the first. Defaults to Noto Sans CJK Regular, from the extra `glyphs`.

    Returns:
        uint8 `(N, size, size)`: 1 for ink.

    Raises:
        UserError: the size is below 1; the font file is missing or unreadable, or the font has none of the
            characters.

    Example:

    >>> render_glyphs(["<pad>", "人"]).sum(axis=(1, 2)).tolist()
    [0, 72]

    Reference:
        Broscheit et al. 2018, "Learning Distributional Token Representations from Visual Features",
        which used ImageMagick. https://aclanthology.org/W18-3025
    """
    if size < 1:
        raise UserError(f"size must be at least 1 pixel, not {size}")
    font = default_font() if font is None else os.fspath(font)
    face, characters = _face(font), list(characters)
    drawn = [i for i, character in enumerate(characters) if len(character) == 1]

    def drawn_large(character: str) -> bytes:  # so that □ differs from the box for missing characters
        return bytes(face(64).getmask(character))

    nowhere = drawn_large(NOWHERE)
    missing = [i for i in drawn if not characters[i].isspace() and drawn_large(characters[i]) == nowhere]
    if missing and len(missing) == len(drawn):
        raise UserError(f"{font} has none of the {len(drawn):,} characters: give a font for their script")
    if missing:
        named = ", ".join(f"{characters[i]} (U+{ord(characters[i]):04X})" for i in missing[:10])
        more = ", …" if len(missing) > 10 else ""
        warnings.warn(
            f"{font} lacks {len(missing):,} of {len(drawn):,} characters, which get one glyph: {named}{more}",
            stacklevel=2,
        )
    glyphs = np.zeros((len(characters), size, size), "uint8")
    for i in drawn:
        glyphs[i] = _centred(face, characters[i], size)
    glyphs[missing] = _centred(face, NOWHERE, size)
    return glyphs


def default_font() -> str:
    """Return the path of Noto Sans CJK; raise `UserError` if it is not installed."""
    try:
        import noto_cjk_sans_otc
    except ImportError:
        raise UserError(
            "the default font, Noto Sans CJK, is not installed: pip install noto-cjk-sans-otc, or give a font"
        ) from None
    return str(noto_cjk_sans_otc.FONT_PATH)


def _face(path: str) -> Callable[[int], ImageFont.FreeTypeFont]:
    """Return a font's Simplified Chinese face, or else its first, as a function of the size."""
    opened = functools.partial(ImageFont.truetype, path, layout_engine=ImageFont.Layout.BASIC)
    families = []
    if os.path.isfile(path):  # otherwise Pillow would search system folders for it
        with contextlib.suppress(OSError):  # after the last face
            while True:
                families.append(opened(22, len(families)).getname()[0] or "")
    if not families:
        raise UserError(f"{path}: no such font file, or not a TTF, OTF or TTC font")
    index = next((i for i, family in enumerate(families) if family.endswith(" SC")), 0)
    return functools.cache(functools.partial(opened, index=index))


def _centred(face: Callable, character: str, size: int) -> np.ndarray:
    """Return a bitmap `(size, size)` of a character, in the largest font size that fits."""
    for type_size in range(size, 0, -1):
        image = Image.new("1", (3 * size, 3 * size))  # with room for ink outside the character's box
        draw = ImageDraw.Draw(image)
        draw.fontmode = "1"  # FreeType's monochrome mode keeps thin strokes, which a threshold loses
        draw.text((size, size), character, fill=1, font=face(type_size))
        ink = image.crop(image.getbbox() or (0, 0, 0, 0))
        if max(ink.size) <= size:
            break
    bitmap = Image.new("1", (size, size))
    bitmap.paste(ink, ((size - ink.width) // 2, (size - ink.height) // 2))
    return np.asarray(bitmap, "uint8")
