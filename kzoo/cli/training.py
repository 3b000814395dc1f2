"""`kzoo train` and `kzoo prepare`."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.console import import_keras, progress_bar, start_backend, start_devices
from kzoo.cli.options import Overrides
from kzoo.errors import UserError

app = typer.Typer()


@app.command()
def train(
    recipe: Annotated[
        Path,
        typer.Argument(help="A recipe's file, or the name of one of the zoo's, such as pope_multi30k."),
    ],
    overrides: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The run's folder; by default runs/RECIPE.")
    ] = None,
    strategy: Annotated[
        str,
        typer.Option(
            help="Devices: one, mirrored, multi_worker, data_parallel or model_parallel; by default all "
            "GPUs, or one CPU."
        ),
    ] = "",
):
    """Train a recipe's model, or resume a stopped run."""
    from kzoo.training.corpus import check_own_files
    from kzoo.training.recipe import read_recipe

    values = read_recipe(recipe, overrides or [])
    check_own_files(values)
    import_keras()
    from kzoo.training.strategies import names_processes, open_strategy

    if not names_processes():  # which started devices could not join
        start_devices()
    opened = open_strategy(strategy)
    from kzoo.training.run import train as train_recipe

    folder = output or Path("runs") / recipe.stem
    train_recipe(values, folder, strategy=opened)
    print(f"trained: {folder / 'preset'}")


@app.command()
def prepare(
    recipe: Annotated[Path, typer.Argument(help="A recipe as for train, of one direction.")],
    overrides: Overrides = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Folder to write; by default the recipe's shards.")
    ] = None,
    processes: Annotated[
        int | None, typer.Option(min=1, help="Number of processes that tokenize; by default one per core.")
    ] = None,
):
    """Tokenize a training text into files on disk (shards), for training that needs little memory."""
    from kzoo.training.recipe import read_recipe

    values = read_recipe(recipe, overrides or [])
    if not (output or values.shards):
        raise UserError("no folder to write: give -o FOLDER, or set shards in the recipe")
    folder = (output or Path(values.shards)).expanduser()
    start_backend()
    from kzoo.data.unknown_characters import unknown_line
    from kzoo.training.preparation import prepare as prepare_shards

    shards = prepare_shards(values, folder, processes, progress_bar)
    print(f"{folder}: {shards.pairs:,} pairs in {len(shards)} shard{'s' * (len(shards) != 1)}")
    if line := unknown_line(shards.unknown):
        print(line)
