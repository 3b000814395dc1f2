"""Draws characters as small bitmaps for the glyph encoder."""

import contextlib
import functools
import os
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from kzoo.errors import UserError

SAMPLE = 256  # glyphs, at least, that are compared to know a font: its regions' faces share many characters
NEARLY = 0.01  # of their pixels may differ: versions of FreeType differ in 0.5 %, faces in 1.3 % and more

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
            the first; a variable font is drawn in its default weight. Defaults to Noto Sans CJK Regular, from
            the extra `glyphs`. A model reads only the font, version and face that it was trained with.

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


class UnseenGlyphs:
    """Draws characters that a glyph model's vocabulary lacks, in the font of those that it has.

    It draws characters of the vocabulary's main script alone: the model has not learned to read others.

    Args:
        characters: the vocabulary.
        glyphs: its bitmaps, `(V, 22, 22)`.

    Attributes:
        vocabulary_size: int. V.
        shape: that of a bitmap.
        why_not: str. Why it draws nothing; "" if it does.
    """

    def __init__(self, characters: Sequence[str], glyphs: np.ndarray):
        self.script = _main_script(characters)
        self.vocabulary_size, *self.shape = glyphs.shape
        self._drawn, self.why_not = {}, why_not_drawn(characters, glyphs)
        if self.why_not:
            warnings.warn(
                f"characters that the vocabulary lacks are not read from their pixels: {self.why_not}",
                stacklevel=2,
            )

    def __call__(self, character: str) -> np.ndarray | None:
        """Return a character's bitmap, uint8 `(22, 22)`; `None` if it cannot be drawn."""
        if character not in self._drawn:
            drawn = None
            if not self.why_not and self.script and _script(character) == self.script:
                with contextlib.suppress(UserError):  # the font lacks it
                    (drawn,) = render_glyphs([character])
            self._drawn[character] = drawn
        return self._drawn[character]


class DrawnRows:
    """Each sentence's characters that the vocabulary lacks, as bitmaps: drawn for a batch when it is made.

    Args:
        tokens: sentences as token ids of `CharacterTokenizer`, with ids beyond the vocabulary.
        draw: draws these characters.

    Attributes:
        tokens: the sentences with ids V, V + 1, … for their own characters, as `GlyphEmbedding` takes them.
    """

    def __init__(self, tokens: Sequence[Sequence[int]], draw: UnseenGlyphs):
        self.draw, self.tokens, self._characters, size = draw, [], [], draw.vocabulary_size
        for row in tokens:
            own = {token: size + e for e, token in enumerate(dict.fromkeys(t for t in row if t >= size))}
            self.tokens.append([own.get(token, token) for token in row])
            self._characters.append([chr(token - size) for token in own])

    def __getitem__(self, numbers: Sequence[int]) -> np.ndarray:
        """Return the bitmaps `(B, E, 22, 22)` of the numbered sentences; E is a power of 8."""
        rows, places = [self._characters[number] for number in numbers], 8
        while places < max(map(len, rows)):
            places *= 8  # few shapes, because each is compiled
        drawn = np.zeros((len(rows), places, *self.draw.shape), "uint8")
        for b, row in enumerate(rows):
            for e, character in enumerate(row):
                drawn[b, e] = self.draw(character)
        return drawn


def why_not_drawn(characters: Sequence[str], glyphs: np.ndarray) -> str:
    """Return why other characters cannot be drawn as these were, `(V, 22, 22)`; "" if they can."""
    script = _main_script(characters)
    sample = [i for i, character in enumerate(characters) if _script(character) == script]
    sample = sample[:: max(1, len(sample) // SAMPLE)]
    try:
        with warnings.catch_warnings(action="ignore"):
            again = render_glyphs([characters[i] for i in sample])
    except UserError as error:
        return str(error)
    if (again != glyphs[sample]).mean() > NEARLY:
        return "the model's glyphs are not of the default font, Noto Sans CJK SC"
    return ""


def _main_script(characters: Sequence[str]) -> str:
    scripts = Counter(filter(None, map(_script, characters)))
    return scripts.most_common(1)[0][0] if scripts else ""


def _script(character: str) -> str:
    """Return the first word of a letter's name in Unicode, such as CJK or LATIN; "" for others."""
    return unicodedata.name(character, "").partition(" ")[0] if character.isalpha() else ""


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
