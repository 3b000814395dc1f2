"""What all figures share: style, colours, fonts, and writing to disk."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager
from matplotlib.style import context

from kzoo.errors import UserError
from kzoo.files import atomic_write
from kzoo.text.glyphs import default_font

# Okabe and Ito's colours for colour-blind readers, without those that are too faint on white; Tol's wine.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#000000", "#882255"]
LINES = ["-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1))]

# Formats, and metadata without the date, so that files do not vary.
FORMATS = {"png": None, "svg": {"Date": None}, "pdf": {"CreationDate": None}}

STYLE = Path(__file__).with_name("figures.mplstyle")


@contextlib.contextmanager
def picture(path: str | Path, size: tuple[float, float], formulas: bool = False) -> Iterator[Figure]:
    """Yield an empty figure to draw on, and write it when the block ends without an error.

    The file is written completely or not at all. Missing folders are created.

    Args:
        path: file to write; the suffix, .png, .svg or .pdf, sets the format.
        size: width and height in inches; a PNG has 150 pixels per inch.
        formulas: whether text between two `$` is a formula. In sentences, it is not.

    Raises:
        UserError: another suffix, before anything is drawn; or the file cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        reason = f"cannot draw a .{suffix} file" if suffix else "a picture's name needs a suffix"
        raise UserError(f"{path}: {reason}; known: {', '.join('.' + known for known in FORMATS)}")
    with context([STYLE, {"font.family": _families(), "text.parse_math": formulas}]):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        with atomic_write(path) as file:
            figure.savefig(file, format=suffix, dpi=150, metadata=FORMATS[suffix])


def look(number: int) -> dict:
    """Return the colour and dashes of line `number`; dashes tell lines apart in black and white."""
    return {"color": COLOURS[number % len(COLOURS)], "linestyle": LINES[number % len(LINES)]}


def without_marks(words: list[str]) -> list[str]:
    """Return subwords without SentencePiece's "▁", for labels."""
    return [word.replace("▁", "") or "▁" for word in words]


@functools.cache
def _families() -> list[str]:
    """Return the fonts to draw text with; a character is drawn with the first font that has it."""
    families = ["DejaVu Sans"]
    with contextlib.suppress(UserError):  # it is not installed
        fontManager.addfont(default_font())
        families.append(FontProperties(fname=default_font()).get_name())
    installed = {font.name for font in fontManager.ttflist if font.name.startswith("Noto Sans ")}
    return [*families, *sorted(installed)]
