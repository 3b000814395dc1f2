#!/usr/bin/env bash
# Pillow 12 draws fonts without hints, such as Google's Noto Sans, in other pixels and widths than Pillow 11.
#
# An expert expects: a new Pillow, or FreeType, changes a pixel here and there; the same font file at the same size
# gives the same letters. FreeType's list of changes and Pillow's release notes name nothing else for letters without
# accents.
# What happens: FreeType 2.14, in Pillow 12's wheels, fits the letters of a TrueType font to the grid by itself if the
# font has no hints, but only the seven bytes of instructions that Google Fonts adds to such fonts. These stopped it
# before.
# All letters change, at 22 pixels by a quarter of their ink, and a third of them get another width: in a line of
# text, all that follows moves. Fonts with hints, such as Noto Sans CJK as OTF or TTC, stay as they were.
# Why it matters: a model that reads text as pixels (glyph encoders, visual text representations for translation, OCR
# of scans to translate) is trained on what Pillow drew. After `pip install -U pillow` it reads other pictures than it
# learned, with no message. Keep the bitmaps with the model, take a font with hints, or pin Pillow.
#
# Versions: Pillow 11.3.0 (FreeType 2.13.3) and 12.0.0 (FreeType 2.14.1); 12.3.0 and 13.0.0 draw like 12.0.0. Fonts:
# Noto Sans 2.015, Noto Sans Thai 2.002, Noto Sans Devanagari 2.007, Noto Sans CJK 2.004. Source: FreeType's commit
# 202297eb5, "Loosen auto-hinting constraints" (2.14.0), which its docs/CHANGES leaves out;
# github.com/python-pillow/Pillow, issue 9205.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet numpy fontpkg-noto-sans==2.15 fontpkg-noto-sans-thai==2.2 \
    fontpkg-noto-sans-devanagari==2.7 noto-cjk-sans-otc==0.0.1
for version in 11.3.0 12.0.0; do
    "$folder/venv/bin/pip" install --quiet --no-deps --target "$folder/$version" "pillow==$version"
done

cd "$folder"
cat > draw.py <<'PYTHON'
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFont, __version__, features

print("Pillow", __version__, "FreeType", features.version("freetype2"))
FONTS = {
    "Latin": ("fontpkg_noto_sans", "NotoSans[[]*", "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"),
    "Cyrillic": ("fontpkg_noto_sans", "NotoSans[[]*", "абвгдежзийклмнопрстуфхцчшщъыьэюя"),
    "Thai": ("fontpkg_noto_sans_thai", "NotoSansThai[[]*", "".join(map(chr, range(0xE01, 0xE2F)))),
    "Devanagari": ("fontpkg_noto_sans_devanagari", "NotoSansDev*", "".join(map(chr, range(0x905, 0x93A)))),
    "Chinese, OTF": ("noto_cjk_sans_otc", "*.ttc", "".join(map(chr, range(0x4E00, 0x5000)))),
}
drawn = {}
for name, (package, file, letters) in FONTS.items():
    (path,) = Path(find_spec(package).origin).parent.rglob(file)
    font = ImageFont.truetype(str(path), 22, layout_engine=ImageFont.Layout.BASIC)
    pictures = []
    for letter in letters:
        picture = Image.new("L", (44, 44))
        ImageDraw.Draw(picture).text((8, 8), letter, fill=255, font=font)
        pictures.append(np.asarray(picture, int))
    drawn[f"{name}/pixels"] = np.array(pictures)
    drawn[f"{name}/widths"] = np.array([font.getlength(letter) for letter in letters])
np.savez(sys.argv[1], **drawn)
PYTHON
for version in 11.3.0 12.0.0; do
    PYTHONPATH="$folder/$version" "$folder/venv/bin/python" draw.py "$version.npz"
done

"$folder/venv/bin/python" - <<'PYTHON'
import sys

import numpy as np

old, new = (np.load(f"{version}.npz") for version in ("11.3.0", "12.0.0"))
print(f"{'22 pixels, grey':16} letters  other pixels  changed ink  other widths")
still = True
for name in ("Latin", "Cyrillic", "Thai", "Devanagari", "Chinese, OTF"):
    before, after = old[f"{name}/pixels"], new[f"{name}/pixels"]
    other = (before != after).any(axis=(1, 2)).mean()
    ink = abs(before - after).sum() / before.sum()
    widths = (old[f"{name}/widths"] != new[f"{name}/widths"]).mean()
    print(f"{name:16} {len(before):7} {other:13.0%} {ink:12.0%} {widths:13.0%}")
    still &= not ink if name == "Chinese, OTF" else other > 0.9 and ink > 0.2
sys.exit(not still)
PYTHON
