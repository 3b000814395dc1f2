"""Pictures as the commands show them."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the command line starts without it
    import numpy as np

MOST = 400  # pixels in width or height: enough for a page or a plot


def shown_picture(path: Path) -> "np.ndarray":
    """Return an image file as uint8 `(h, w, 3)`, scaled down to `MOST` pixels, proportions kept.

    Raises:
        UserError: the file is missing or cannot be read.
    """
    from PIL import Image

    from kzoo.models.images import read_picture

    image = Image.fromarray(read_picture(path))
    image.thumbnail((MOST, MOST), Image.Resampling.BILINEAR)
    return np.asarray(image)
