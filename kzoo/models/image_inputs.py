"""The images that come with sentences, checked against what a model reads."""

import os
from collections.abc import Sequence

import numpy as np
from PIL import Image, ImageOps

from kzoo.errors import UserError


def image_rows(
    images: np.ndarray | Sequence | None,
    count: int,
    shape: tuple[int, ...] | None,
    extractor: dict | None = None,
) -> np.ndarray | None:
    """Return one image a sentence, as a model takes them.

    Args:
        images: `(N, *shape)`, or N paths of image files if `shape` is that of a picture; `None` for a model
            without images.
        count: int. N, the sentences.
        shape: `(D_img,)`, `(R, D_img)` or `(h, w, 3)`; `None`: the model has no images.
        extractor: what must have computed a file's features, as a preset names it; `None`: anything.

    Raises:
        UserError: images for a model without, none for a model with them, features of another extractor,
            unequally many as sentences, of another shape, or a file that is no image.
    """
    if shape is None:
        if images is not None:
            raise UserError("this model reads text only: give it no images")
        return None
    if images is None:
        raise UserError(f"this model reads an image {shape} with every sentence: give images")
    where = ""
    if hasattr(images, "extractor"):  # a `kzoo.data.FeatureFile`
        where = f"{images.path}: "
        if extractor is not None:
            images.require(extractor)
    if len(images) != count:
        raise UserError(f"{where}{count:,} sentences but {len(images):,} images: one with each is needed")
    files = isinstance(images, list | tuple) and all(isinstance(i, str | os.PathLike) for i in images)
    if files and len(shape) != 3:
        raise UserError(f"this model reads features {shape} of pictures: extract them, files will not do")
    if files:
        images = (
            np.stack([read_picture(path, shape[:2]) for path in images]) if count else np.zeros((0, *shape))
        )
    if isinstance(images, list | tuple):
        images = np.stack(images)
    if tuple(images.shape[1:]) != tuple(shape):
        raise UserError(
            f"{where}the images have the shape {tuple(images.shape[1:])}, the model reads {tuple(shape)}"
        )
    return images


def read_picture(path: str | os.PathLike, size: Sequence[int]) -> np.ndarray:
    """Return an image file as uint8 `(h, w, 3)`, turned as its EXIF says, grey and palettes as colours.

    Args:
        path: JPEG, PNG or whatever else Pillow reads.
        size: h and w, to which the image is scaled.

    Raises:
        UserError: no such file, or one that is no image, or a truncated one.
    """
    try:
        with Image.open(path) as image:
            turned = ImageOps.exif_transpose(image)
            if turned.mode.startswith("I"):  # 16 bits, which Pillow cuts off instead of scaling
                turned = turned.convert("I").point(lambda value: value / 256).convert("L")
            turned = turned.convert("RGB")
            return np.asarray(turned.resize((size[1], size[0]), Image.Resampling.BILINEAR))
    except FileNotFoundError:
        raise UserError(f"{path}: no such image") from None
    except Exception as error:  # Pillow's readers raise whatever a broken file leads them to
        raise UserError(f"{path} is no image that can be read ({error})") from None
