"""The inputs of a request: limits, tokenized texts, decoded images.

Pictures come as JPEG and PNG files, features as nested lists or .npy files.
"""

import io
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image

from kzoo.errors import UserError
from kzoo.images import read_picture

# A PNG of a few kilobytes can unpack to gigabytes. A camera's picture has 24 million pixels.
MOST_PIXELS = 32_000_000
LONGEST_SIDE = 65_500  # JPEG's limit; 32 million pixels in one row or column take 1.2 GB to decode
# A progressive JPEG has several scans, usually ten. Each may have only a few bytes, but takes a pass over all
# pixels.
MOST_SCANS, SCAN = 100, b"\xff\xda"


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of all requests together.

    Args:
        characters: int. Maximum characters per text.
        sentences: int. Maximum sentences per request.
        document: int. Maximum sentences of a document; each counts once.
        body: int. Maximum bytes of a request's body.
        bodies: int. Maximum bytes of all bodies that the server holds; requests beyond that get 503.
        read_seconds: float. Seconds that a body may fall behind 100 kB/s.
        queue: int. Maximum waiting sentences of all requests; requests beyond that get 503. A request of more
            than 16 sentences may fill three quarters, so set at least 4/3 of `sentences`.
    """

    characters: int = 5_000
    sentences: int = 256
    document: int = 4096
    body: int = 8 * 2**20
    bodies: int = 256 * 2**20
    read_seconds: float = 10.0
    queue: int = 1024

    def check_count(self, count: int, most: int | None = None):
        """Raise `UserError` for a request with too many sentences: more than `most`, or `sentences`."""
        if count > (most := most or self.sentences):
            raise UserError(f"{count:,} sentences in a request; at most {most:,} are allowed")

    def check_texts(self, texts: list[str], called: str = "sentence"):
        """Raise `UserError` for too many texts, or one that is too long.

        Raises:
            UserError: names the first invalid text as `called`, with its number in the request.
        """
        self.check_count(len(texts))
        for number, text in enumerate(texts, 1):
            if len(text) > self.characters:
                raise UserError(
                    f"{called} {number} has {len(text):,} characters; at most {self.characters:,} are allowed"
                )


def image_kind(shape: tuple[int, ...] | None) -> str | None:
    """Return what images of `shape` are: `"picture"`, `"features"`, or `None` without a shape."""
    return shape and ("picture" if len(shape) == 3 else "features")


def decoded_images(images: Sequence | None, shape: tuple[int, ...] | None) -> Sequence | None:
    """Return a request's images as arrays; `None` if it has none. `image_rows` then checks these.

    Args:
        images: for pictures, the bytes of JPEG or PNG files; for features, numbers, or the bytes of .npy
            files.
        shape: the model's `image_shape`.

    Raises:
        UserError: images that cannot be read, or pictures with too many pixels in total.
    """
    if images is None or shape is None:
        return images
    if image_kind(shape) == "features":
        return [features(image, number) for number, image in enumerate(images, 1)]
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
    try:
        return read_picture(io.BytesIO(image), shape[:2])
    except UserError:
        raise UserError(f"image {number} is truncated or broken") from None


def features(image, number: int) -> np.ndarray:
    """Return numbers, from nested lists or the bytes of an .npy file, as float32."""
    try:
        saved = isinstance(image, bytes)
        values = np.lib.format.read_array(io.BytesIO(image)) if saved else np.asarray(image)
    except Exception:  # NumPy may raise any error for a broken file
        raise UserError(f"image {number} is neither numbers nor a .npy file of numpy.save") from None
    if values.dtype.kind not in "iuf":
        raise UserError(f"image {number} is {values.dtype}, not numbers")
    with np.errstate(over="ignore"):
        return values.astype("float32", copy=False)
