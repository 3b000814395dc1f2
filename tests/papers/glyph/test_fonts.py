"""The faces of a collection that are compared, against Pillow's own choice of a face."""

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from kzoo.text import render_glyphs
from kzoo.text.glyphs import default_font
from training.glyph.fonts import one_face


def test_a_face_of_a_collection_becomes_a_font(tmp_path):
    pytest.importorskip("noto_cjk_sans_otc", reason="the glyphs' font is not installed")
    for number in 0, 4:
        font = one_face(f"{default_font()}:{number}", tmp_path / "face.otf")
        face = ImageFont.truetype(default_font(), 22, index=number)
        assert ImageFont.truetype(font, 22).getname() == face.getname()
        image = Image.new("1", (44, 44))
        draw = ImageDraw.Draw(image)
        draw.fontmode = "1"
        draw.text((11, 11), "骨", fill=1, font=face)
        (glyph,) = render_glyphs("骨", font=font)
        drawn = Image.fromarray(glyph * 255)
        np.testing.assert_array_equal(
            np.asarray(drawn.crop(drawn.getbbox())) > 0, image.crop(image.getbbox())
        )


def test_another_font_is_its_file(tmp_path):
    assert one_face("fonts/my.otf", tmp_path) == "fonts/my.otf"
