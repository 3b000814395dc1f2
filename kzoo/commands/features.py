"""Features of pictures, for models that read images."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.commands.backend import start_backend
from kzoo.commands.progress import progress_bar
from kzoo.errors import UserError

OTHERS = (".npy", ".json", ".part", ".txt", ".db")  # what stands beside pictures, Thumbs.db too

app = typer.Typer(no_args_is_help=True, help="Features of pictures, for models that read images.")


@app.command("extract")
def extract(
    folder: Annotated[Path, typer.Argument(help="Where the pictures are.")],
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help=".npy file; Multi30k's are SPLIT.npy. The folder's name, here, by default."
        ),
    ] = None,
    names: Annotated[
        Path | None, typer.Option(help="Their file names, a line each, as Multi30k's SPLIT.txt; all, sorted.")
    ] = None,
    model: Annotated[str, typer.Option(help="A network of keras.applications.")] = "vgg19",
    layer: Annotated[str, typer.Option(help="Whose output is taken; block5_pool has 49 regions.")] = "fc7",
    weights: Annotated[str, typer.Option(help="imagenet, a file of weights, or random.")] = "imagenet",
    batch_size: Annotated[int, typer.Option(min=1)] = 16,
    replace_corrupt: Annotated[
        bool, typer.Option(help="Give unreadable pictures the mean feature; an error otherwise.")
    ] = False,
):
    """Write the features of pictures; goes on where it was interrupted."""
    from kzoo.data.corpora import picture_names

    if not folder.is_dir():
        raise UserError(f"{folder}: no such folder of pictures")
    output = output or Path(f"{folder.resolve().name}.npy")
    listed = picture_names(names) if names else _pictures_in(folder)
    start_backend()
    from kzoo.training.extraction import extract_features

    with progress_bar("extracting", len(set(listed))) as advance:
        found = extract_features(
            output, folder, listed, model, layer, weights, batch_size, replace_corrupt, advance
        )
    print(f"{output}: {found.shape}, {found.extractor.model} {found.extractor.layer}")


def _pictures_in(folder: Path) -> list[str]:
    """Return the names of a folder's files that may be pictures, sorted; hidden ones are not."""
    files = (path for path in folder.iterdir() if path.is_file() and not path.name.startswith("."))
    return sorted(path.name for path in files if path.suffix not in OTHERS)
