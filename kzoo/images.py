"""Images that accompany sentences: reading, checking, and replacing them with wrong ones."""

import os
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from PIL import Image, ImageOps

from kzoo.errors import UserError, first_line

NUMBERS = "iuf"  # kinds of NumPy dtypes that an image may have
PIECE = 256  # images checked together
GREY = 127
SEED = 0  # of the shuffled order


@dataclass(frozen=True)
class CheckedImages(Sequence):
    """One image per sentence that a model takes, from `checked_images`: only their number is checked again.

    A slice is checked, too; one index gives the image.

    Attributes:
        rows: `(N, *image_shape)`: an array, or features that are read from their file when indexed.
    """

    rows: np.ndarray | Sequence

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index):
        return CheckedImages(self.rows[index]) if isinstance(index, slice) else self.rows[index]


def checked_images(translator, images: np.ndarray | Sequence | None, count: int) -> CheckedImages | None:
    """Return images for `count` sentences of a translator, as `image_rows` checks them."""
    rows = image_rows(images, count, translator.image_shape, translator.extractor)
    return None if rows is None else CheckedImages(rows)


def image_rows(
    images: np.ndarray | Sequence | str | os.PathLike | None,
    count: int,
    shape: tuple[int, ...] | None,
    extractor: dict | None = None,
) -> np.ndarray | None:
    """Return one image per sentence, in a model's input format.

    Args:
        images: `(N, *shape)`, or a list of N images. For pictures, also a list of paths of image files, or a
            single path. `None` for a text-only model. `CheckedImages` are returned as they are.
        count: int. N, the number of sentences.
        shape: `(D_img,)`, `(R, D_img)` or `(h, w, 3)`; `None` for a text-only model.
        extractor: the extractor that the features must come from, as in a preset; `None`: any.

    Raises:
        UserError: images for a text-only model, or none for a model that reads images; a sentence without an
            image; the wrong extractor, number of images or shape; values that are not finite in float32;
            pictures that are not from 0 to 255; or a file that is not an image.
    """
    if isinstance(images, CheckedImages) and len(images) == count and shape is not None:
        return images.rows
    if shape is None:
        if images is not None:
            raise UserError("this model reads text only: give it no images")
        return None
    if images is None:
        how = "--image PICTURE for each" if len(shape) == 3 else "--images with kzoo features extract's file"
        raise UserError(f"this model reads an image {shape} with every sentence: give images ({how})")
    where = ""
    if hasattr(images, "extractor"):  # a `kzoo.data.FeatureFile`
        where = f"{images.path}: "
        if extractor is not None:
            images.require(extractor)
    elif isinstance(images, str | os.PathLike):
        images = [images]
    elif getattr(getattr(images, "dtype", None), "kind", "O") not in NUMBERS:  # a list, or a backend's tensor
        images = list(images)
    if len(images) != count:
        raise UserError(f"{where}{count:,} sentences but {len(images):,} images: give one per sentence")
    if count == 0:
        return np.zeros((0, *shape), "float32")
    if isinstance(images, list):
        images = np.stack([_image(image, number, shape) for number, image in enumerate(images, 1)])
    if tuple(images.shape[1:]) != tuple(shape):
        raise UserError(
            f"{where}the images have the shape {tuple(images.shape[1:])}, the model reads {tuple(shape)} "
            "(its image_shape)"
        )
    _check_finite(images, where)
    if len(shape) == 3 and images.dtype != "uint8":
        low, high = images.min(), images.max()
        # To at most 1, or to ImageNet's mean and deviation.
        normalized = images.dtype.kind == "f" and (0 < high <= 1 or low < 0 < high <= 3)
        if normalized or low < -64 or high > 320:  # resizing may go a little beyond
            raise UserError(
                f"pictures are numbers from 0 to 255, but these go from {low:g} to {high:g}: rescale them"
            )
    return images


def _image(image, number: int, shape: tuple[int, ...]) -> np.ndarray:
    """Return the image of sentence `number`, an array or the path of a file, as the model takes it."""
    if image is None:
        raise UserError(f"sentence {number} has no image: this model reads one with every sentence")
    if isinstance(image, str | os.PathLike):
        if len(shape) != 3:
            raise UserError(
                f"this model reads picture features of shape {shape}, not image files: "
                "run kzoo features extract"
            )
        return read_picture(image, shape[:2])
    array = np.asarray(image)
    if array.dtype.kind not in NUMBERS or array.shape != tuple(shape):
        raise UserError(
            f"sentence {number}: its image is {array.dtype} of shape {array.shape}, the model reads numbers "
            f"of shape {tuple(shape)}"
        )
    return array


def _check_finite(images: np.ndarray, where: str):
    """Raise `UserError` for numbers that are not finite in float32.

    Works in pieces: a feature file may not fit into memory.
    """
    if images.dtype.kind != "f":
        return
    for first in range(0, len(images), PIECE):
        piece = images[first : first + PIECE]
        finite = (np.abs(piece) <= np.finfo("float32").max).reshape(len(piece), -1).all(axis=1)
        if not finite.all():
            raise UserError(
                f"{where}sentence {first + finite.argmin() + 1}: its image has NaN or infinite numbers, "
                "or numbers too large for float32"
            )


def read_picture(path: str | os.PathLike, size: Sequence[int] | None = None) -> np.ndarray:
    """Return an image file as uint8 RGB `(h, w, 3)`, rotated according to its EXIF.

    Args:
        path: JPEG, PNG or another format that Pillow reads, except EPS.
        size: h and w to scale the image to; by default, its own size.

    Raises:
        UserError: no such file, a file that is not an image, or a truncated one.
    """
    try:
        Image.init()  # so that it knows all formats
        formats = [name for name in Image.ID if name != "EPS"]  # on which it would run Ghostscript
        with Image.open(path, formats=formats) as image:
            for other in ("xmp", "XML:com.adobe.xmp"):  # Pillow's sources of orientation besides EXIF
                image.info.pop(other, None)
            turned = ImageOps.exif_transpose(image)
            if turned.mode == "F":
                raise ValueError("its pixels are floats: save it with 8 bits per channel")
            if turned.mode.startswith("I"):  # more than 8 bits, which Pillow would clip instead of scale
                sixteen, turned = turned.mode.startswith("I;16"), turned.convert("I")
                scale = 256 if sixteen or turned.getextrema()[1] > 255 else 1
                turned = turned.point(lambda value: value / scale).convert("L")
            turned = turned.convert("RGB")
            if size is not None:
                turned = turned.resize((size[1], size[0]), Image.Resampling.BILINEAR)
            return np.asarray(turned)
    except FileNotFoundError:
        raise UserError(f"{path}: no such image") from None
    except Exception as error:  # on broken files Pillow raises errors of many kinds
        raise UserError(f"{path} cannot be read as an image ({first_line(error)})") from None


def shown_images(translator, images, count: int, shown: str = "right") -> CheckedImages:
    """Return the sentences' own images, shuffled images, or blank ones.

    Args:
        translator: reads images; has `image_shape` and `extractor`.
        images: as `Translator.translate` takes them, one per sentence.
        count: int. Number of sentences.
        shown: `"right"`: the sentences' own images. `"shuffled"`: the same in a random order, where about one
            sentence keeps its own. `"none"`: grey pictures, or zeros for features.

    Raises:
        UserError: images that do not fit the translator or the sentences.
    """
    checked = checked_images(translator, images, count)
    if shown == "shuffled":
        return CheckedImages(checked.rows[np.random.default_rng(SEED).permutation(count)])
    if shown == "none":
        blank = GREY if len(translator.image_shape) == 3 else 0
        return CheckedImages(np.full((count, *translator.image_shape), blank, checked.rows.dtype))
    return checked
