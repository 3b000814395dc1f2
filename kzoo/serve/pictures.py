"""The images of requests, decoded: pictures from JPEG and PNG, features from nested lists."""

import io

import numpy as np
from PIL import Image

from kzoo.errors import UserError
from kzoo.models.image_inputs import read_picture

# A PNG of a few kilobytes can hold a picture that takes gigabytes; a camera's has 24 million pixels.
MOST_PIXELS = 32_000_000


def decoded(image: bytes | np.ndarray | list, shape: tuple[int, ...], number: int) -> np.ndarray:
    """Return an image as a model reads it: uint8 for pictures, float32 for features.

    Args:
        image: bytes of a JPEG or PNG file if `shape` is that of a picture; otherwise numbers of `shape`.
        shape: the model's `image_shape`.
        number: int. The image's number in the request, for messages.

    Raises:
        UserError: it is not.
    """
    if len(shape) == 3:
        return _picture(image, shape, number)
    return _features(image, shape, number)


def check_pixels(images: list):
    """Reject pictures with more pixels than a request may hold, by the beginning of their files.

    Args:
        images: bytes of JPEG or PNG files.

    Raises:
        UserError: too many pixels in all, or an image that is not a JPEG or PNG file.
    """
    total = sum(_pixels(image, number) for number, image in enumerate(images, 1))
    if total > MOST_PIXELS:
        raise UserError(f"the request's images have {total:,} pixels; at most {MOST_PIXELS:,} are allowed")


def _pixels(image, number: int) -> int:
    if not isinstance(image, bytes):
        raise UserError(f"image {number} is not the bytes of a JPEG or PNG file, which this model reads")
    try:
        with Image.open(io.BytesIO(image), formats=("JPEG", "PNG")) as header:
            return header.width * header.height
    except Image.DecompressionBombError:  # Pillow does not even open an image with so many pixels
        raise UserError(
            f"image {number} has too many pixels; at most {MOST_PIXELS:,} are allowed in a request"
        ) from None
    except Exception:  # Pillow's readers may raise any error on a broken file
        raise UserError(f"image {number} is neither a JPEG nor a PNG that can be read") from None


def _picture(image: bytes, shape: tuple[int, ...], number: int) -> np.ndarray:
    try:
        return read_picture(io.BytesIO(image), shape[:2])
    except UserError:
        raise UserError(f"image {number} is truncated or broken") from None


def _features(image, shape: tuple[int, ...], number: int) -> np.ndarray:
    try:
        values = np.asarray(image)
    except ValueError:  # lists of different lengths
        values = np.array(None)
    if values.dtype.kind not in "iuf" or values.shape != tuple(shape):
        raise UserError(
            f"image {number} is not {' × '.join(map(str, shape))} numbers, which this model reads"
        )
    with np.errstate(over="ignore"):
        values = values.astype("float32")
    if not np.isfinite(values).all():
        raise UserError(f"image {number} has numbers that are not finite")
    return values
