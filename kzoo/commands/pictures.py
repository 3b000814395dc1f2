"""Pictures as commands show them."""

from pathlib import Path

import numpy as np

MOST = 400  # pixels across or down: what a page or a plot has room for


def shown_picture(path: Path) -> np.ndarray:
    """Return an image file as uint8 `(h, w, 3)`, of its own proportions, scaled down to `MOST` pixels.

    Raises:
        UserError: no such file, or none that can be read.
    """
    from PIL import Image, ImageOps

    from kzoo.models.image_inputs import read_picture

    read_picture(path, (1, 1))  # which says what is wrong with it
    with Image.open(path) as image:
        width, height = ImageOps.exif_transpose(image).size
    scale = min(1, MOST / max(width, height))
    return read_picture(path, (max(1, round(scale * height)), max(1, round(scale * width))))
