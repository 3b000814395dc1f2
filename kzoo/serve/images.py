"""Decodes the images of requests: pictures from JPEG and PNG, features from nested lists or .npy files."""

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from kzoo.errors import UserError

# A PNG of a few kilobytes can unpack to gigabytes. A camera's picture has 24 million pixels.
MOST_PIXELS = 32_000_000
LONGEST_SIDE = 65_500  # JPEG's limit; 32 million pixels in one row or column take 1.2 GB to decode
# A progressive JPEG has several scans, usually ten. Each may have only a few bytes, but takes a pass over all
# pixels.
MOST_SCANS, SCAN = 100, b"\xff\xda"


def image_kind(shape: tuple[int, ...] | None) -> str | None:
    """Return what images of `shape` are: `"picture"`, `"features"`, or `None` without a shape."""
    return shape and ("picture" if len(shape) == 3 else "features")


def decoded_images(
    images: Sequence | None, count: int, shape: tuple[int, ...] | None
) -> list[np.ndarray | None]:
    """Return an image for each text, as the model reads it; `None` if the model reads text only.

    Args:
        images: for pictures, the bytes of JPEG or PNG files; for features, numbers of `shape`, or the bytes
            of .npy files.
        count: int. Number of texts.
        shape: the model's `image_shape`.

    Raises:
        UserError: images that do not fit, or pictures with too many pixels in total.
    """
    if shape is None:
        return [None] * count
    if images is None:
        raise UserError(f"this model reads an image {shape} with every sentence: give images")
    if image_kind(shape) == "features":
        return [features(image, shape, number) for number, image in enumerate(images, 1)]
    total = sum(_pixels(image, number) for number, image in enumerate(images, 1))
    if total > MOST_PIXELS:
        raise UserError(f"the request's images have {total:,} pixels; at most {MOST_PIXELS:,} are allowed")
    return [_picture(image, shape, number) for number, image in enumerate(images, 1)]


def _pixels(image, number: int) -> int:
    """Return the number of pixels of a picture, read from the beginning of its file."""
    if image.startswith(b"\xff\xd8") and image.count(SCAN) > MOST_SCANS:
        raise UserError(
            f"image {number} is a JPEG of more than {MOST_SCANS} scans: save it as a baseline JPEG"
        )
    try:
        with Image.open(io.BytesIO(image), formats=("JPEG", "PNG")) as header:
            width, height = header.size
    except Image.DecompressionBombError:  # Pillow's own limit
        raise UserError(
            f"image {number} has too many pixels; at most {MOST_PIXELS:,} are allowed in a request"
        ) from None
    except Exception:  # Pillow may raise any error for a broken file
        raise UserError(f"image {number} is neither a JPEG nor a PNG that can be read") from None
    if max(width, height) > LONGEST_SIDE:
        raise UserError(
            f"image {number} is {width:,} × {height:,} pixels; at most {LONGEST_SIDE:,} a side are allowed"
        )
    return width * height


def _picture(image: bytes, shape: tuple[int, ...], number: int) -> np.ndarray:
    from kzoo.models.images import read_picture  # imports Keras, which CTranslate2's server does not need

    try:
        return read_picture(io.BytesIO(image), shape[:2])
    except UserError:
        raise UserError(f"image {number} is truncated or broken") from None


def features(image, shape: tuple[int, ...], number: int) -> np.ndarray:
    """Return numbers of `shape`, from nested lists or the bytes of an .npy file, as float32.

    Raises:
        UserError: image `number` has another shape, or is not finite.
    """
    try:
        saved = isinstance(image, bytes)
        values = np.lib.format.read_array(io.BytesIO(image)) if saved else np.asarray(image)
    except Exception:  # NumPy may raise any error for a broken file
        raise UserError(f"image {number} is neither numbers nor a .npy file of numpy.save") from None
    if values.dtype.kind not in "iuf" or values.shape != tuple(shape):
        found, read = f"{values.dtype} {values.shape}", " × ".join(map(str, shape))
        raise UserError(f"image {number} is {found}, not {read} numbers, which this model reads")
    with np.errstate(over="ignore"):
        values = values.astype("float32")
    if not np.isfinite(values).all():
        raise UserError(f"image {number} has numbers that are not finite")
    return values
