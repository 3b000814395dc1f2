"""What the zoo's pictures share: their style, their colours, and how one reaches the disk whole."""

import contextlib
import functools
import importlib.util
from collections.abc import Iterator
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties, fontManager

from kzoo.errors import UserError
from kzoo.files import whole_file

# Okabe and Ito's colours, which the colour-blind tell apart; yellow left out, too faint on white.
COLOURS = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"]

FORMATS = ("png", "svg", "pdf")
WITHOUT_DATE = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}  # the same picture, the same file

STYLE = {
    "axes.edgecolor": "#444444",
    "axes.grid": False,
    "axes.labelcolor": "#222222",
    "axes.linewidth": 0.7,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 9,
    "figure.titlesize": 10,
    "font.size": 8.5,
    "grid.color": "#DDDDDD",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
    "mathtext.fontset": "cm",
    "svg.hashsalt": "kzoo",  # names within the file, the same each time
    "xtick.color": "#444444",
    "ytick.color": "#444444",
}


@contextlib.contextmanager
def picture(path: str | Path, size: tuple[float, float], formulas: bool = False) -> Iterator[Figure]:
    """Give an empty figure to draw on, and write it when the block ends without an error.

    The file is written beside its place and moved there: nobody sees half a picture, and a failure leaves
    the picture that was there before. Missing folders are made.

    Args:
        path: where to write; the suffix, one of .png, .svg and .pdf, gives the format.
        size: width and height, inches; a PNG has 150 pixels an inch.
        formulas: whether text between two `$` is a formula. A sentence that is drawn may hold them.

    Raises:
        UserError: another suffix (before anything is computed), or a file that cannot be written.
    """
    path = Path(path)
    suffix = path.suffix.lower().removeprefix(".")
    if suffix not in FORMATS:
        given = f"cannot draw a .{suffix} file" if suffix else "a picture's name needs a suffix"
        raise UserError(f"{path}: {given}; known: {', '.join('.' + known for known in FORMATS)}")
    with rc_context({**STYLE, "font.family": _families(), "text.parse_math": formulas}):
        figure = Figure(figsize=size, layout="constrained")
        yield figure
        with whole_file(path) as file:
            figure.savefig(file, format=suffix, dpi=150, metadata=WITHOUT_DATE.get(suffix))


@functools.cache
def _families() -> list[str]:
    """Return the fonts that text is drawn with: what the first lacks, as Chinese, by the next."""
    families = ["DejaVu Sans"]
    if importlib.util.find_spec("noto_cjk_sans_otc"):
        import noto_cjk_sans_otc

        path = str(noto_cjk_sans_otc.FONT_PATH)
        fontManager.addfont(path)
        families.append(FontProperties(fname=path).get_name())
    return families
