"""`kzoo train`, `kzoo check` and `kzoo prepare`; `kzoo demo`, from training to translation in a minute."""

import itertools
import json
import os
import re
from dataclasses import replace
from functools import partial
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


What = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE|FILES [KEY=VALUE]...",
        help="A recipe's file, or the name of one of the zoo's, such as pope_multi30k. Or your own text: "
        "one file per language, such as train.en train.de, or tables. Then changes, such as epochs=3.",
    ),
]
From = Annotated[
    str | None, typer.Option("--from", help="Source language, if the files' endings do not name it.")
]
To = Annotated[str | None, typer.Option("--to", help="Target language, likewise.")]


@app.command()
def train(
    what: What,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", help="The run's folder; by default runs/RECIPE, or such as runs/en_de."
        ),
    ] = None,
    source: From = None,
    target: To = None,
    minutes: Annotated[
        float | None,
        typer.Option(
            min=0.5, help="Minutes in which the run ends; by default it ends when it stops improving."
        ),
    ] = None,
    show: Annotated[
        bool, typer.Option("--show", help="Print what is chosen for your text, and train nothing.")
    ] = False,
    strategy: Annotated[
        str,
        typer.Option(
            help="Devices: one, mirrored, multi_worker, data_parallel or model_parallel; by default all "
            "processes that the environment names, else all GPUs, else one device."
        ),
    ] = "",
):
    """Train a model, or resume a stopped run."""
    from kzoo.training.choice import choose, text_of
    from kzoo.training.corpus import check_own_files, recipe_corpus
    from kzoo.training.early_checks import check_early
    from kzoo.training.processes import names_processes
    from kzoo.training.recipe_files import completed
    from kzoo.training.run_folder import begun_recipe

    given, recipe, folder, where = _given(what, source, target)
    if minutes:
        given["minutes"] = minutes
    folder = output or folder
    text = text_of(recipe)
    chosen = choose(given, text, begun_recipe(folder)) if text else {}
    recipe = completed(given, chosen, where)
    if chosen:
        _print_choice(chosen)
    elif show:
        print(f"Nothing is chosen: {where} has every value, or is not for your own text")
    if show:
        return
    several = names_processes()
    if several:  # one that failed would leave the others waiting, and files may differ between machines
        corpus = recipe_corpus(recipe, text)
        check_own_files(recipe, corpus)
    else:
        corpus = check_early(recipe, folder, text)
    import_keras()
    from kzoo.training.compiling import tune_process
    from kzoo.training.strategies import open_strategy

    tune_process()  # `train` does too, but devices have started by then
    if not several:  # processes must connect before devices start
        start_devices()
    opened = open_strategy(strategy)
    from kzoo.training.run import train_task
    from kzoo.training.tasks import recipe_task

    train_task(partial(recipe_task, corpus=corpus), recipe, folder, strategy=opened)
    print(f"trained: {folder / 'preset'}")
    if recipe.corpus == "files" and recipe.test and not recipe.images and opened.is_chief:
        from kzoo.cli.run_scores import score_run

        score_run(folder, recipe, corpus)


def _given(words: list[str], source: str | None, target: str | None) -> tuple:
    """Return what the command's words give: values, as a recipe too, the run's default folder, and a name."""
    from kzoo.data.binary_tables import DATASET, SPLITS
    from kzoo.data.own_files import is_table
    from kzoo.data.text_files import stream_lines
    from kzoo.training.recipe_files import read_values, text_values

    files = list(itertools.takewhile(lambda word: not re.match(r"[\w.]+\s*=", word), words))
    overrides = words[len(files) :]
    if "=" in files:
        raise UserError("write a change without spaces, such as epochs=3")
    if not files:
        raise UserError(f"{words[0]!r} is a change: name a recipe, or your files, before it")
    if len(files) == 1 and not is_table(Path(files[0])):
        if Path(files[0]).suffix not in ("", ".toml") and not Path(files[0]).is_dir():
            next(stream_lines(Path(files[0])), None)  # recognizes other formats, and a missing file
            raise UserError(
                f"{files[0]} alone: give a file for each language, a table (.tsv, .csv), or a recipe (.toml)"
            )
        if source or target:
            if Path(files[0]).is_dir():
                raise UserError(
                    f"{files[0]} holds no dataset of Hugging Face: neither {DATASET} nor {SPLITS}"
                )
            raise UserError("--from and --to are for your own files: a recipe names its languages")
        return *read_values(files[0], overrides), Path("runs") / Path(files[0]).stem, files[0]
    values, recipe = text_values(files, source, target, overrides)
    languages = recipe.languages or [recipe.source, recipe.target]
    return values, recipe, Path("runs") / "_".join(languages), "your own text"


def _print_choice(chosen: dict):
    """Print the chosen values as a recipe has them, with the reasons."""
    print("Chosen for your text; to change a value, give KEY=VALUE:")
    lines = {f"{key} = {json.dumps(choice.value)}": choice.why for key, choice in chosen.items()}
    width = max(map(len, lines))
    for line, why in lines.items():
        print(f"    {line:{width}}  # {why}")


@app.command()
def check(what: What, source: From = None, target: To = None):
    """Print which rows of your own text are odd, such as copies; train nothing."""
    from kzoo.training.corpus import odd_rows_table, recipe_corpus
    from kzoo.training.recipe_checks import check_have_effect

    _, recipe, _, where = _given(what, source, target)
    recipe = replace(recipe, shards="", images="")
    if recipe.corpus != "files" or not recipe.train:
        raise UserError(f"{where} has no text of your own: give one file per language, or tables")
    check_have_effect(recipe, where, ("columns", "approved"))
    print(odd_rows_table(recipe, recipe_corpus(recipe)))


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
    from kzoo.training.early_checks import check_preparation
    from kzoo.training.recipe_files import completed, read_values

    # Nothing is chosen by the text: training from shards may not have it.
    given, _ = read_values(recipe, overrides or [])
    values = completed(given, {}, str(recipe))
    if not (output or values.shards):
        raise UserError("no folder to write: give -o FOLDER, or set shards in the recipe")
    folder = Path(os.path.expanduser(output or values.shards))
    check_preparation(values, folder)
    start_backend()
    from kzoo.text.vocabulary import unknown_line
    from kzoo.training.preparation import prepare as prepare_shards

    shards = prepare_shards(values, folder, processes, progress_bar)
    shard = "shard" if len(shards) == 1 else "shards"
    print(f"{folder}: {shards.pairs:,} pairs in {len(shards)} {shard}")
    if line := unknown_line(shards.unknown):
        print(line)


@app.command()
def demo(
    text: Annotated[
        list[str] | None, typer.Argument(help="English sentences to translate to German.")
    ] = None,
):
    """Train a small PoPE model on the built-in corpus Scenes, score it, and try a trained preset."""
    from kzoo.presets.shelf import locate

    locate(SHELF_PRESET)  # if the shelf is missing, say so before a minute of training
    start_backend()
    from kzoo.data import open_corpus
    from kzoo.evaluation import evaluate, score_table
    from kzoo.presets import load
    from kzoo.training.recipe_files import read_recipe
    from kzoo.training.run import train as train_recipe

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
