"""`kzoo features`: computes features of pictures."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.console import progress_bar, start_backend
from kzoo.errors import UserError

OTHERS = (".npy", ".json", ".part", ".txt", ".db")  # files found beside pictures, such as Thumbs.db

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
    from kzoo.training.feature_extraction import extract_features

    with progress_bar("extracting", len(set(listed))) as advance:
        found = extract_features(
            output, folder, listed, model, layer, weights, batch_size, replace_corrupt, advance
        )
    print(f"{output}: {found.shape}, {found.extractor.model} {found.extractor.layer}")


def _pictures_in(folder: Path) -> list[str]:
    """Return the names of a folder's files that may be pictures, sorted."""
    files = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted(path.name for path in files if path.suffix not in OTHERS)
