"""Pictures as the commands show them."""

from pathlib import Path

import numpy as np

MOST = 400  # pixels in width or height: enough for a page or a plot


def shown_picture(path: Path) -> np.ndarray:
    """Return an image file as uint8 `(h, w, 3)`, scaled down to `MOST` pixels, proportions kept.

    Raises:
        UserError: the file is missing or cannot be read.
    """
    from PIL import Image, ImageOps

    from kzoo.models.image_inputs import read_picture

    read_picture(path, (1, 1))  # its error says what is wrong with the file
    with Image.open(path) as image:
        width, height = ImageOps.exif_transpose(image).size
    scale = min(1, MOST / max(width, height))
    return read_picture(path, (max(1, round(scale * height)), max(1, round(scale * width))))
