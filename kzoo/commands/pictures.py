"""Pictures as commands show them."""

from pathlib import Path

import numpy as np

MOST = 400  # pixels across or down: what a page or a plot has room for


def shown_picture(path: Path) -> np.ndarray:
    """Return an image file as uint8 `(h, w, 3)`, of its own proportions, scaled down to `MOST` pixels.

    Raises:
        UserError: no such file, or none that can be read.
    """
    from PIL import Image

    from kzoo.models.image_inputs import read_picture

    image = Image.fromarray(read_picture(path))
    image.thumbnail((MOST, MOST), Image.Resampling.BILINEAR)
    return np.asarray(image)
