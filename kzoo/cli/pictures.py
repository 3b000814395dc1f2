"""`kzoo features`: features of pictures. Also finds and opens the pictures that other commands show."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.console import progress_bar, start_backend
from kzoo.errors import UserError

LARGEST = 400  # pixels in width or height of a picture shown: enough for a page or a plot
# Files found beside pictures, such as Thumbs.db and desktop.ini.
OTHERS = (".npy", ".json", ".part", ".txt", ".db", ".ini")

app = typer.Typer(no_args_is_help=True, help="Compute features of pictures, for models that read features.")


@app.command("extract")
def extract(
    folder: Annotated[Path, typer.Argument(help="Folder with the pictures.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help=".npy file, such as train.npy; by default FOLDER.npy in the current folder.",
        ),
    ] = None,
    names: Annotated[
        Path | None,
        typer.Option(
            help="File with the name of each sentence's picture; by default all pictures, sorted by name."
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="A network of keras.applications.")] = "vgg19",
    layer: Annotated[
        str, typer.Option(help="Layer whose output is the features; block5_pool has 49 regions.")
    ] = "fc7",
    weights: Annotated[str, typer.Option(help="imagenet, a weights file, or random.")] = "imagenet",
    batch_size: Annotated[int, typer.Option(min=1, help="Pictures per batch.")] = 16,
    replace_corrupt: Annotated[
        bool, typer.Option(help="Give unreadable pictures the mean of the others' features.")
    ] = False,
):
    """Write the features of pictures. After an interruption, the same command resumes."""
    from kzoo.data.corpora import picture_names

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of pictures")
    output = output or Path(f"{folder.resolve().name}.npy")
    listed = picture_names(names) if names else _pictures_in(folder)
    start_backend()
    from kzoo.data.feature_extraction import extract_features

    with progress_bar("extracting", len(set(listed))) as advance:
        found = extract_features(
            output, folder, listed, model, layer, weights, batch_size, replace_corrupt, advance
        )
    print(f"{output}: {found.shape}, {found.extractor.model} {found.extractor.layer}")


def _pictures_in(folder: Path) -> list[str]:
    """Return the names of a folder's files that may be pictures, sorted."""
    files = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted(path.name for path in files if path.suffix not in OTHERS)


def shown_picture(path: Path):
    """Return an image file as uint8 `(h, w, 3)`, scaled down to at most `LARGEST` pixels a side.

    Raises:
        UserError: the file is missing or cannot be read.
    """
    import numpy as np
    from PIL import Image

    from kzoo.images import read_picture

    image = Image.fromarray(read_picture(path))
    image.thumbnail((LARGEST, LARGEST), Image.Resampling.BILINEAR)
    return np.asarray(image)


def picture_files(features, folder: Path) -> list[Path]:
    """Return each sentence's picture in a folder, found by its name in the sentences' features.

    Raises:
        UserError: a file is missing.
    """
    files = [folder / features.names[row] for row in features.order]
    missing = [file for file in dict.fromkeys(files) if not file.is_file()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UserError(f"{missing[0]}: no such picture{more}; {features.path} has features of it")
    return files


def name_in(features: Path, image: Path) -> str:
    """Return a picture's name in a feature file: the longest end of its path found, or its file name."""
    from kzoo.data import open_features

    names = open_features(features).names
    whole = image.resolve().parts
    ends = [name for name in names if whole[-len(Path(name).parts) :] == Path(name).parts]
    same = [name for name in names if Path(name).name == image.name]
    return max(ends, key=len) if ends else same[0] if len(same) == 1 else image.name
