"""The PoPE paper's table: position encodings on Multi30k, English to German, several seeds, all test sets.

    python -m training.pope.tables --size tiny --seeds 1,2,3

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints a Markdown
table of means and spreads, with the paper's numbers below them, and writes it and the results as JSON beside
the runs.

Reproduces Aggarwal 2024, Table 1: sizes base and big, 10,000 steps. Without `--encodings`, all that the size
has: pope, sine, rope and learned (big: pope and sine; small: without learned).
"""

import dataclasses
import json
import tomllib
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Literal

import typer

from kzoo.cli import main
from kzoo.cli.options import Overrides, numbers
from kzoo.data import open_corpus
from kzoo.evaluation import evaluate, score_table
from kzoo.evaluation.markdown import show_markdown
from kzoo.evaluation.scores import write_scores
from kzoo.files import write_json
from kzoo.presets import load
from kzoo.presets.shelf import MODULES, builder_module
from kzoo.training import Recipe, read_recipe, train
from kzoo.training.run_folder import keep_results

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
ENCODINGS = ("pope", "sine", "rope", "learned")
PAPER = Path(__file__).parent / "paper.toml"
# The paper has one recipe for base and big.
RECIPES = {"tiny": "pope_multi30k", "small": "pope_multi30k_small"}
RECIPES |= dict.fromkeys(("base", "big"), "pope_multi30k_base")

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def table1(
    size: Annotated[Literal["tiny", "small", "base", "big"], typer.Option()] = "tiny",
    seeds: Annotated[str, typer.Option(help="Numbers, comma-separated.")] = "1,2,3",
    encodings: Annotated[str | None, typer.Option(help="Names, comma-separated.")] = None,
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/pope_table"),
    overrides: Overrides = None,
):
    recipe = read_recipe(
        RECIPES[size],
        overrides or [],
        fixed=("preset", "corpus", "source", "target", "seed"),
    )
    built = [encoding for encoding in ENCODINGS if f"{encoding}_{size}" in MODULES]
    asked = encodings.split(",") if encodings else built
    results = {}
    for encoding in asked:
        builder_module(f"{encoding}_{size}")
    for encoding in asked:
        for seed in numbers(seeds):
            values = dataclasses.replace(recipe, preset=f"{encoding}_{size}", seed=seed)
            folder = runs / f"{values.preset}_{seed}"
            results.setdefault(encoding, []).append(scores_of(values, folder))
    path = runs / f"table1_{size}.json"
    write_json(path, results)
    show_markdown(table(results, size), path)


def scores_of(recipe: Recipe, folder: Path) -> list[dict]:
    """Train and score one run, or read its existing scores."""
    path = folder / "scores.json"
    if not keep_results(path, recipe):
        train(recipe, folder)
        scores, _ = evaluate(
            load(folder),
            open_corpus(recipe.corpus),
            TESTS,
            recipe.source,
            recipe.target,
            recipe.beam_size,
            recipe.length_penalty,
            recipe.truncate,
        )
        print(score_table(scores))
        write_scores(scores, path, recipe=dataclasses.asdict(recipe))
    return json.loads(path.read_text())["scores"]


def table(results: dict[str, list[list[dict]]], size: str) -> str:
    """Return the Markdown table: BLEU for each encoding, as mean ± spread over the seeds, and the paper's."""
    lines = [
        "| positions | seeds | " + " | ".join(TESTS) + " | all | all, lowercased |",
        "| --- " + "| ---: " * (len(TESTS) + 3) + "|",
    ]
    for encoding, runs in results.items():
        cells = [_spread([run[i]["bleu"] for run in runs]) for i in range(len(TESTS) + 1)]
        cells.append(_spread([run[-1]["bleu_lowercased"] for run in runs]))
        lines.append(f"| {encoding}_{size} | {len(runs)} | {' | '.join(cells)} |")
    for row in tomllib.loads(PAPER.read_text())["table1"]:
        name = f"paper: {row['positions']}, {row['model']}, {row['corpus']}, {row['steps']:,} steps"
        lines.append(f"| {name} ({row['study']}) | {'| ' * (len(TESTS) + 1)}{row['bleu']} |  |")
    first = next(iter(results.values()))[0][0]
    note = "The paper's rows are its Table 1; it does not state a row's test set, case and tokenizer."
    differs = "" if size in ("base", "big") else f" Its models are base and big, ours {size}."
    lines += ["", note + differs, ""]
    lines += [f"{name}: `{first['signatures'][name]}`" for name in ("bleu", "bleu_lowercased")]
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main(app)
