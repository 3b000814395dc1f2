"""Glyphs against what a bitmap must be: whole, centred, the font's own drawing; and the errors of fonts."""

import warnings

import numpy as np
import pytest
from matplotlib import get_data_path
from message_of import message_of
from PIL import Image, ImageDraw, ImageFont

from kzoo.errors import UserError
from kzoo.text import common_chinese_characters, render_glyphs
from kzoo.text.glyphs import UnseenGlyphs

LATIN = f"{get_data_path()}/fonts/ttf/DejaVuSans.ttf"


def margins(glyph):
    """Return the empty rows above and below the ink, and the empty columns left and right of it."""
    rows, columns = np.flatnonzero(glyph.any(axis=1)), np.flatnonzero(glyph.any(axis=0))
    return rows[0], len(glyph) - 1 - rows[-1], columns[0], glyph.shape[1] - 1 - columns[-1]


def drawn(font, character):
    """Return the ink of a character as the font draws it, without margins."""
    image = Image.new("1", (4 * font.size, 4 * font.size))
    draw = ImageDraw.Draw(image)
    draw.fontmode = "1"
    draw.text((font.size, font.size), character, fill=1, font=font)
    return np.asarray(image.crop(image.getbbox()))


def ink(glyph):
    """Return a bitmap without its margins."""
    above, below, left, right = margins(glyph)
    return glyph[above : len(glyph) - below, left : glyph.shape[1] - right]


def centred(ink):
    """Return a bitmap with ink in its centre."""
    (above, below), (left, right) = (((22 - n) // 2, (23 - n) // 2) for n in ink.shape)
    return np.pad(ink, ((above, below), (left, right)))


def faces():
    """Return the default font's faces by region."""
    from noto_cjk_sans_otc import FONT_PATH

    fonts = [ImageFont.truetype(str(FONT_PATH), 22, index=index) for index in range(5)]
    return {font.getname()[0][-2:]: font for font in fonts}


def test_bitmaps_are_binary_and_centred():
    characters = "国龘一，。g—的"
    glyphs = render_glyphs(characters)
    assert glyphs.shape == (len(characters), 22, 22) and glyphs.dtype == np.uint8
    assert set(np.unique(glyphs)) == {0, 1}
    for glyph in glyphs:
        above, below, left, right = margins(glyph)
        assert abs(above - below) <= 1 and abs(left - right) <= 1


def test_a_glyph_is_the_fonts_drawing():
    (glyph,) = render_glyphs("R", font=LATIN)
    np.testing.assert_array_equal(ink(glyph), drawn(ImageFont.truetype(LATIN, 22), "R"))


@pytest.mark.parametrize("size", [11, 22, 40])
def test_no_stroke_is_cut_off(size):
    # Two and three squares wide in the font: what does not fit is drawn smaller, whole.
    for glyph in render_glyphs("⸺⸻", size):
        rows = np.flatnonzero(glyph.any(axis=1))
        assert rows.size and (glyph[rows].sum(axis=1) >= size - 4).all()
    # Ink at the border has its end there: as many pixels as in a bitmap with room around it.
    font = ImageFont.truetype(LATIN, size)
    for character in "Wg@Ǻ":
        whole = drawn(font, character)
        if max(whole.shape) <= size:
            assert render_glyphs(character, size, LATIN).sum() == whole.sum()


def test_special_tokens_and_spaces_are_blank():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        glyphs = render_glyphs(["<pad>", "<unk>", "<s>", "</s>", " ", "\u3000", "人"])
    assert not glyphs[:6].any() and glyphs[6].any()


def test_lacking_characters_are_named_and_share_a_glyph():
    with pytest.warns(UserWarning, match=r" 2 of 4 .*国 \(U\+56FD\), 家 \(U\+5BB6\)"):
        glyphs = render_glyphs("A国家□", font=LATIN)
    assert glyphs[1].any()
    np.testing.assert_array_equal(glyphs[1], glyphs[2])
    assert (glyphs[1] != glyphs[3]).any()


def test_different_characters_have_different_glyphs():
    common = [chr(code) for code in range(0x4E00, 0x4E00 + 500)]
    assert len({glyph.tobytes() for glyph in render_glyphs(common)}) == 500


def test_the_simplified_chinese_face_is_taken():
    by_region = {region: drawn(face, "骨") for region, face in faces().items()}
    (glyph,) = render_glyphs("骨")
    np.testing.assert_array_equal(ink(glyph), by_region["SC"])
    assert not np.array_equal(by_region["SC"], by_region["TC"])


@pytest.mark.parametrize("region", ["JP", "HK"])
def test_the_faces_of_the_default_font_are_not_mixed(region):
    frequent = "我的了你他不是一在这汤姆有们个吗"  # drawn alike by all but for three
    characters, font = list(dict.fromkeys([*frequent, *common_chinese_characters()[:500]])), faces()[region]
    glyphs = np.array([centred(drawn(font, character)) for character in characters])
    with pytest.warns(UserWarning, match="font"):
        assert UnseenGlyphs(characters, glyphs)("国") is None
    assert UnseenGlyphs(characters, render_glyphs(characters))("国").any()


def test_a_size_without_pixels_is_named():
    for size in (0, -1):
        assert message_of(render_glyphs, "R", size, LATIN).endswith(f" {size}")


def test_fonts_that_cannot_be_used_are_named(tmp_path):
    (tmp_path / "broken.otf").write_bytes(b"not a font" * 100)
    for font in ("gone.ttf", "broken.otf"):
        assert font in message_of(render_glyphs, "人", font=tmp_path / font)
    assert "2 characters" in message_of(render_glyphs, "国家", font=LATIN)


def test_a_missing_default_font_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "noto_cjk_sans_otc", None)
    with pytest.raises(UserError, match="noto-cjk-sans-otc"):
        render_glyphs("人")
