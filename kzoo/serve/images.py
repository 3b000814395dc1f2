"""The images of requests, decoded: pictures from JPEG and PNG, features from nested lists or .npy files."""

import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from kzoo.errors import UserError

# A PNG of a few kilobytes can hold a picture that takes gigabytes; a camera's has 24 million pixels.
MOST_PIXELS = 32_000_000
LONGEST_SIDE = 65_500  # JPEG's own; strips of one row or column take many times the memory of their pixels
# A progressive JPEG stores its pixels in several scans, usually ten. Each costs a pass over all pixels, and
# may have only a few bytes.
MOST_SCANS, SCAN = 100, b"\xff\xda"
HEADER_READERS = {
    (1, 0): np.lib.format.read_array_header_1_0,
    (2, 0): np.lib.format.read_array_header_2_0,
}


def image_kind(shape: tuple[int, ...] | None) -> str | None:
    """Return what a preset with images of `shape` reads: a picture, features, or nothing."""
    return shape and ("picture" if len(shape) == 3 else "features")


def decoded_images(
    images: Sequence | None, count: int, shape: tuple[int, ...] | None
) -> list[np.ndarray | None]:
    """Return an image for each text, as the model reads it; `None` if it reads none.

    Args:
        images: bytes of JPEG or PNG files if `shape` is that of a picture; otherwise numbers of `shape`, or
            the bytes of an .npy file.
        count: int. Number of texts.
        shape: the model's `image_shape`.

    Raises:
        UserError: images that do not fit, or pictures with too many pixels in all.
    """
    if shape is None:
        if images is not None:
            raise UserError("this model reads text only: give it no images")
        return [None] * count
    if images is None:
        raise UserError(f"this model reads an image {shape} with every sentence: give images")
    if len(images) != count:
        raise UserError(f"{count:,} sentences but {len(images):,} images: one with each is needed")
    read = features
    if image_kind(shape) == "picture":
        total = sum(_pixels(image, number) for number, image in enumerate(images, 1))
        if total > MOST_PIXELS:
            raise UserError(
                f"the request's images have {total:,} pixels; at most {MOST_PIXELS:,} are allowed"
            )
        read = _picture
    return [read(image, shape, number) for number, image in enumerate(images, 1)]


def _pixels(image, number: int) -> int:
    """Return how many pixels a picture has, by the beginning of its file."""
    if not isinstance(image, bytes):
        raise UserError(f"image {number} is not the bytes of a JPEG or PNG file, which this model reads")
    if image.startswith(b"\xff\xd8") and image.count(SCAN) > MOST_SCANS:
        raise UserError(
            f"image {number} is a JPEG of more than {MOST_SCANS} scans: save it as a baseline JPEG"
        )
    try:
        with Image.open(io.BytesIO(image), formats=("JPEG", "PNG")) as header:
            width, height = header.size
    except Image.DecompressionBombError:  # Pillow does not even open an image with so many pixels
        raise UserError(
            f"image {number} has too many pixels; at most {MOST_PIXELS:,} are allowed in a request"
        ) from None
    except Exception:  # Pillow's readers may raise any error on a broken file
        raise UserError(f"image {number} is neither a JPEG nor a PNG that can be read") from None
    if max(width, height) > LONGEST_SIDE:
        raise UserError(
            f"image {number} is {width:,} × {height:,} pixels; at most {LONGEST_SIDE:,} a side are allowed"
        )
    return width * height


def _picture(image: bytes, shape: tuple[int, ...], number: int) -> np.ndarray:
    from kzoo.models.images import read_picture  # with Keras, which CTranslate2's server does not import

    try:
        return read_picture(io.BytesIO(image), shape[:2])
    except UserError:
        raise UserError(f"image {number} is truncated or broken") from None


def features(image, shape: tuple[int, ...], number: int) -> np.ndarray:
    """Return numbers of `shape`, or those in the bytes of an .npy file, as float32.

    Raises:
        UserError: they have another shape, or are not finite; names them by their number in the request.
    """
    if isinstance(image, bytes):
        image = _saved(image, shape)
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


def _saved(content: bytes, shape: tuple[int, ...]) -> np.ndarray:
    """Return an .npy file's numbers."""
    try:
        file = io.BytesIO(content)
        found, _, dtype = HEADER_READERS[np.lib.format.read_magic(file)](file)
    except Exception:  # NumPy's parser may raise any error on a broken header
        raise UserError("the features are not a .npy file as written by numpy.save") from None
    if found != tuple(shape) or dtype.kind not in "iuf":  # checked before memory is allocated
        raise UserError(f"the features are {dtype} {found}; the model reads numbers {tuple(shape)}")
    try:
        return np.load(io.BytesIO(content), allow_pickle=False)
    except ValueError:
        raise UserError("the file of features is truncated") from None
