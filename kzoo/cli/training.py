"""`kzoo train` and `kzoo prepare`; `kzoo demo`, from training to translation on built-in data in a minute."""

import os
from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.console import command_line, import_keras, progress_bar, start_backend, start_devices
from kzoo.cli.options import Overrides
from kzoo.errors import UserError

app = typer.Typer()

# Of `kzoo demo`.
DEMO_RUN = Path("runs/demo")
SHELF_PRESET = "pope_small_multi30k_en_de"
SENTENCES = (
    "A young girl in a red dress is riding a bicycle down the street.",
    "Two men are playing guitar in front of a large crowd.",
    "A brown dog is running through the snow with a ball in its mouth.",
)


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
            "processes that the environment names, else all GPUs, else one device."
        ),
    ] = "",
):
    """Train a recipe's model, or resume a stopped run."""
    from kzoo.training.corpus import check_own_files
    from kzoo.training.recipe import read_recipe

    values = read_recipe(recipe, overrides or [])
    check_own_files(values)
    import_keras()
    from kzoo.training.compiling import tune_process
    from kzoo.training.strategies import names_processes, open_strategy

    tune_process()  # `train` does too, but devices have started by then
    if not names_processes():  # processes must connect before devices start
        start_devices()
    opened = open_strategy(strategy)
    from kzoo.training.run import train as train_recipe

    folder = output or Path("runs") / recipe.stem
    train_recipe(values, folder, strategy=opened)
    print(f"trained: {folder / 'preset'}")


@app.command()
def prepare(
    recipe: Annotated[Path, typer.Argument(help="A recipe of one direction, as for train.")],
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
    folder = Path(os.path.expanduser(output or values.shards))
    start_backend()
    from kzoo.text.vocabulary import unknown_line
    from kzoo.training.preparation import prepare as prepare_shards

    shards = prepare_shards(values, folder, processes, progress_bar)
    print(f"{folder}: {shards.pairs:,} pairs in {len(shards)} shard{'s' * (len(shards) != 1)}")
    if line := unknown_line(shards.unknown):
        print(line)


@app.command()
def demo(
    text: Annotated[
        list[str] | None, typer.Argument(help="English sentences to translate to German.")
    ] = None,
):
    """Train a small PoPE model on the built-in corpus Scenes, score it, and try a trained preset."""
    start_backend()
    from kzoo.data import open_corpus
    from kzoo.evaluation import evaluate, score_table
    from kzoo.presets import load
    from kzoo.presets.shelf import locate
    from kzoo.training.recipe import read_recipe
    from kzoo.training.run import train as train_recipe

    locate(SHELF_PRESET)  # if the shelf is missing, say so before a minute of training
    print("Training a small Transformer with PoPE positions on Scenes, English to German")
    translator = train_recipe(read_recipe("demo_scenes"), DEMO_RUN)

    print("\nIts translations of test sentences")
    corpus = open_corpus("scenes")
    scores, translations = evaluate(translator, corpus, ["test"], "en", "de", beam_size=1)
    english, german = corpus.pairs("test", "en", "de")
    for source, reference, translation in list(zip(english, german, translations["test"], strict=True))[:3]:
        print(f"English:     {source}\nreference:   {reference}\ntranslation: {translation}\n")
    print(score_table(scores))

    print(f"\nTranslations by {SHELF_PRESET}, trained on Multi30k")
    sentences = text or list(SENTENCES)
    for source, translation in zip(sentences, load(SHELF_PRESET).translate(sentences), strict=True):
        print(f"English:     {source}\ntranslation: {translation}\n")

    kzoo = command_line()
    print(f"Next\n\nTranslate with the small model that you have just trained, {DEMO_RUN}:\n")
    print(f'    {kzoo} translate {DEMO_RUN} "She is running with a child in the yard."\n')
    print("Train a model on two files of your own; line 7 of one translates line 7 of the other:\n")
    print(f"    {kzoo} train train.en train.de")
