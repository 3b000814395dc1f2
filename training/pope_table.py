"""The PoPE paper's table: position encodings on Multi30k, English to German, several seeds, all test sets.

    python training/pope_table.py --size tiny --seeds 1,2,3

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints a Markdown
table of means and spreads, with the paper's number beside them, and writes it and the results as JSON beside
the runs.

Reproduces Aggarwal 2024, Table 1. The paper says BLEU 40.7 for PoPE after 10,000 steps, on "all testing
samples" (2,461 sentences), without stating case or tokenizer.
"""

import dataclasses
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated, Literal

import typer

from kzoo.cli import main
from kzoo.commands.options import Overrides, numbers
from kzoo.data import open_corpus
from kzoo.evaluation import evaluate, score_table
from kzoo.evaluation.markdown import show_markdown
from kzoo.evaluation.scores import write_scores
from kzoo.files import write_json
from kzoo.presets import load
from kzoo.presets.shelf import builder_module
from kzoo.training import Recipe, read_recipe, train
from kzoo.training.run_folder import keep_results

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
PAPER = {"pope": "40.7"}

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def table1(
    size: Annotated[Literal["tiny", "base"], typer.Option()] = "tiny",
    seeds: Annotated[str, typer.Option(help="Numbers, comma-separated.")] = "1,2,3",
    encodings: Annotated[str, typer.Option(help="Names, comma-separated.")] = "pope,sine,rope,learned",
    runs: Annotated[Path, typer.Option(help="Folder of the runs.")] = Path("runs/pope_table"),
    overrides: Overrides = None,
):
    recipe = read_recipe(
        Path(__file__).parent / f"pope_multi30k{'' if size == 'tiny' else '_' + size}.toml",
        overrides or [],
        fixed=("preset", "corpus", "source", "target", "seed"),
    )
    results = {}
    for encoding in encodings.split(","):
        builder_module(f"{encoding}_{size}")
    for encoding in encodings.split(","):
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
    """Return the Markdown table: BLEU for each encoding, as mean ± spread over the seeds."""
    lines = [
        "| positions | seeds | " + " | ".join(TESTS) + " | all | all, lowercased | paper |",
        "| --- " + "| ---: " * (len(TESTS) + 4) + "|",
    ]
    for encoding, runs in results.items():
        cells = [_spread([run[i]["bleu"] for run in runs]) for i in range(len(TESTS) + 1)]
        cells.append(_spread([run[-1]["bleu_lowercased"] for run in runs]))
        lines.append(f"| {encoding}_{size} | {len(runs)} | {' | '.join(cells)} | {PAPER.get(encoding, '')} |")
    first = next(iter(results.values()))[0][0]
    lines += ["", *(f"{name}: `{first['signatures'][name]}`" for name in ("bleu", "bleu_lowercased"))]
    return "\n".join(lines)


def _spread(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    main(app)
