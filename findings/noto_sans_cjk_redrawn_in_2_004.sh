#!/usr/bin/env bash
# Noto Sans CJK 2.004 draws almost every character in other pixels than 1.004, at the same size by the same library.
#
# An expert expects: of one font family, one region's face and one weight, versions add characters and repair a few;
# at 22 pixels the others look the same, as they do on paper.
# What happens: 2.004 has new outlines, which differ by some thousandths of the em, and new hints. Of the characters of
# GB 2312 and Big5, 97 % differ in black and white, half of these in 14 or more of 484 pixels, and all in grey.
# Why it matters: "Noto Sans CJK" names no pixels. Systems that are a few years apart, and packages of PyPI today,
# have different versions. A translator that reads bitmaps of 2.004 (30.6 BLEU from Chinese) has 23.4 with those of
# 1.004, and no message says why. Keep the bitmaps with the model, or the font's version and checksum.
#
# Versions: Noto Sans CJK SC 1.004 (mplfonts 0.0.11) and 2.004 (noto-cjk-sans-otc 0.0.1), Pillow 13.0.0. The
# translator is kzoo's; `training/glyph/fonts.py` measures it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy pillow==13.0.0 noto-cjk-sans-otc==0.0.1 fonttools==4.68.0
"$folder/venv/bin/pip" install --quiet --no-deps mplfonts==0.0.11

"$folder/venv/bin/python" - <<'PYTHON'
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from fontTools.ttLib import TTFont
from PIL import Image, ImageDraw, ImageFont, __version__, features

print("Pillow", __version__, "FreeType", features.version("freetype2"))
SIZE = 22
COMMON = []  # the characters of GB 2312, and of Big5's plane of frequent ones
for character in map(chr, range(0x4E00, 0xA000)):
    if character.encode("gb2312", "ignore") or b"\xa4" <= character.encode("big5", "ignore") < b"\xc9":
        COMMON.append(character)


def draw(package, file, number, mode):
    """Return the characters' pictures in a font, each in the middle of a bitmap."""
    (path,) = Path(find_spec(package).origin).parent.rglob(file)
    font = ImageFont.truetype(str(path), SIZE, index=number, layout_engine=ImageFont.Layout.BASIC)
    version = TTFont(path, fontNumber=number)["name"].getDebugName(5).split(";")[0]
    pictures = []
    for character in COMMON:
        drawn = Image.new(mode, (3 * SIZE, 3 * SIZE))
        on = ImageDraw.Draw(drawn)
        on.fontmode = mode
        on.text((SIZE, SIZE), character, fill=1 if mode == "1" else 255, font=font)
        drawn = drawn.crop(drawn.getbbox())
        middle = Image.new(mode, (SIZE + 2, SIZE + 2))
        middle.paste(drawn, ((middle.width - drawn.width) // 2, (middle.height - drawn.height) // 2))
        pictures.append(np.asarray(middle, int))
    return " ".join((*font.getname(), version)), np.array(pictures)


for mode, kind in ("1", "black and white"), ("L", "grey"):
    of_old, old = draw("mplfonts", "NotoSansCJKsc-Regular.otf", 0, mode)
    of_new, new = draw("noto_cjk_sans_otc", "NotoSansCJK-Regular.ttc", 2, mode)
    other = (old != new).sum(axis=(1, 2))
    share, ink = (other > 0).mean(), abs(old - new).sum() / old.sum()
    print(f"{of_old}, {of_new}: of {len(COMMON):,} characters in {kind}, {share:.1%} differ, in {ink:.1%} of the ink;")
    print(f"    median of those that differ: {np.median(other[other > 0]):.0f} pixels")
    assert of_old == "Noto Sans CJK SC Regular Version 1.004" and of_new == "Noto Sans CJK SC Regular Version 2.004"
    assert share > 0.9 and ink > 0.05
PYTHON
