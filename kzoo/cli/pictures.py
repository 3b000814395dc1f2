"""Pictures for the commands that show them: scaled, and found by the names in a file of features."""

from pathlib import Path

from kzoo.errors import UserError

LARGEST = 400  # pixels in width or height: enough for a page or a plot


def shown_picture(path: Path):
    """Return an image file as uint8 `(h, w, 3)`, scaled down to at most `LARGEST` pixels a side.

    Raises:
        UserError: the file is missing or cannot be read.
    """
    import numpy as np
    from PIL import Image

    from kzoo.models.images import read_picture

    image = Image.fromarray(read_picture(path))
    image.thumbnail((LARGEST, LARGEST), Image.Resampling.BILINEAR)
    return np.asarray(image)


def picture_files(features, count: int, folder: Path) -> list[Path]:
    """Return each sentence's picture in a folder, found by its name in features `(count, …)`.

    Raises:
        UserError: the numbers of features and sentences differ, or a file is missing.
    """
    from kzoo.models.images import image_rows

    image_rows(features, count, features.shape[1:])
    files = [folder / features.names[row] for row in features.order]
    missing = [file for file in dict.fromkeys(files) if not file.is_file()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UserError(f"{missing[0]}: no such picture{more}; {features.path} has features of it")
    return files


def name_in(features: Path, image: Path) -> str:
    """Return a picture's name in a file of features: the longest end of its path there, or its file name."""
    from kzoo.data import open_features

    names = open_features(features).names
    whole = image.resolve().parts
    ends = [name for name in names if whole[-len(Path(name).parts) :] == Path(name).parts]
    same = [name for name in names if Path(name).name == image.name]
    return max(ends, key=len) if ends else same[0] if len(same) == 1 else image.name
