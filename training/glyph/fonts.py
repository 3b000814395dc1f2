"""Other fonts' pixels, and what a translator loses if it reads them instead of its own.

    python -m training.glyph.fonts FONT.otf FONTS.ttc:1

Prints a Markdown table: the default font's faces, then the given fonts; `:1` chooses the second face of a
collection. The translator reads Tatoeba's test set with its characters' bitmaps replaced. The command repeats
"Other fonts" in `RESULTS.md`; its fonts are named there.
"""

import tempfile
import warnings
from pathlib import Path
from typing import Annotated

import numpy as np
import typer
from fontTools.ttLib.sfnt import SFNTReader, SFNTWriter
from keras import ops
from PIL import ImageFont

from kzoo.cli import main
from kzoo.data import open_corpus
from kzoo.evaluation import score_translations
from kzoo.evaluation.scores import markdown_table
from kzoo.presets import load
from kzoo.text import render_glyphs
from kzoo.text.glyphs import default_font

FACES = 5  # JP, KR, SC, TC, HK; then the same with Latin letters of one width

app = typer.Typer(add_completion=False, help=__doc__)


@app.command()
def fonts(
    given: Annotated[list[str] | None, typer.Argument(metavar="FONT...")] = None,
    preset: Annotated[str, typer.Option(help="A glyph translator of the default font, zh to en.")] = (
        "glyph_tiny_tatoeba_zh_en"
    ),
):
    """Compare fonts with the default font."""
    translator = load(preset)
    embedding = translator.backbone.source_embedding
    own = ops.convert_to_numpy(embedding.glyphs)
    source, references = open_corpus("tatoeba_zh_en").pairs("test", "zh", "en")
    characters = translator.source_tokenizer.get_vocabulary()
    ideographs = np.array(["\u4e00" <= character <= "\u9fff" for character in characters])
    rows = []
    for name in [*(f"{default_font()}:{face}" for face in range(FACES)), *(given or [])]:
        with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings(action="ignore"):
            font = one_face(name, Path(folder) / "face.otf")
            family, style = ImageFont.truetype(font, 22).getname()
            glyphs = render_glyphs(characters, font=font)
            embedding.glyphs.assign(glyphs)
            embedding.empty()
            translations = translator.translate(source)
        bleu = score_translations("test", translations, references, "en").bleu
        pixels = (glyphs != own)[ideographs].sum(axis=(1, 2))
        differ = pixels[pixels > 0]
        share, median = 100 * len(differ) / len(pixels), np.median(differ) if len(differ) else 0
        rows.append([f"{family} {style}", f"{share:.1f} %", f"{median:.0f}", f"{bleu:.1f}"])
        typer.echo(" ".join(rows[-1]), err=True)
    typer.echo(markdown_table(["font", "ideographs that differ", "in pixels of 484, median", "BLEU"], rows))


def one_face(name: str, path: Path) -> str:
    """Return a font's file; of a collection's face, `FONTS.ttc:1`, it is written to `path`."""
    collection, _, number = name.rpartition(":")
    if not number.isdigit():
        return name
    with open(collection, "rb") as opened, open(path, "wb") as written:
        face = SFNTReader(opened, fontNumber=int(number))
        single = SFNTWriter(written, len(face.tables), face.sfntVersion)
        for tag in face.tables:
            single[tag] = face[tag]
        single.close()
    return str(path)


if __name__ == "__main__":
    main(app)
