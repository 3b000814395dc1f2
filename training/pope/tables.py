"""The PoPE paper's table: position encodings on Multi30k, English to German, with several seeds.

    python -m training.pope.tables --size tiny --seeds 1,2,3

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints a Markdown
table of means and spreads, with the paper's numbers below them, and writes it and the results as JSON beside
the runs.

Reproduces Aggarwal 2024, Table 1: size base, 10,000 steps. By default, `--encodings` are all
that the size has: pope, sine, rope and learned (small: without learned; big: pope and sine).
"""

import dataclasses
from pathlib import Path
from typing import Annotated, Literal

import typer

from kzoo.cli import main
from kzoo.cli.options import Overrides
from kzoo.data import open_corpus
from kzoo.evaluation import evaluate, score_table
from kzoo.evaluation.scores import markdown_table, write_scores
from kzoo.files import write_json
from kzoo.presets.builders import BUILDERS, builder
from kzoo.training import Recipe
from training.paper_tables import (
    Runs,
    numbers,
    paper_numbers,
    print_estimate,
    scored_once,
    show_markdown,
    spread,
    table_recipe,
)

TESTS = ["test_2016_flickr", "test_2017_flickr", "test_2017_mscoco"]
ENCODINGS = ("pope", "sine", "rope", "learned")
PAPER = paper_numbers(__file__)
# The paper has one recipe for base and big.
RECIPES = {"tiny": "pope_multi30k", "small": "pope_multi30k_small"}
RECIPES |= dict.fromkeys(("base", "big"), "pope_multi30k_base")

app = typer.Typer(add_completion=False)


@app.command(help=__doc__)
def table1(
    size: Annotated[Literal["tiny", "small", "base", "big"], typer.Option()] = "tiny",
    seeds: Annotated[str, typer.Option(help="Numbers, comma-separated.")] = "1,2,3",
    encodings: Annotated[str | None, typer.Option(help="Names, comma-separated.")] = None,
    runs: Runs = Path("runs/pope_table"),
    overrides: Overrides = None,
):
    recipe = table_recipe(
        RECIPES[size],
        overrides or [],
        fixed=("preset", "corpus", "source", "target", "seed"),
    )
    built = [encoding for encoding in ENCODINGS if f"{encoding}_{size}" in BUILDERS]
    chosen = encodings.split(",") if encodings else built
    results, planned = {}, []
    for encoding in chosen:
        builder(f"{encoding}_{size}")  # raises an error before anything is trained
        for seed in numbers(seeds):
            values = dataclasses.replace(recipe, preset=f"{encoding}_{size}", seed=seed)
            planned.append((encoding, values, runs / f"{values.preset}_{seed}"))
    print_estimate(RECIPES[size], [run for _, *run in planned])
    for encoding, *run in planned:
        results.setdefault(encoding, []).append(scores_of(*run))
    path = runs / f"table1_{size}.json"
    write_json(path, results)
    show_markdown(table(results, size), path)


def scores_of(recipe: Recipe, folder: Path) -> list[dict]:
    """Train and score a run, or read its scores."""

    def score(translator, path: Path):
        corpus, languages = open_corpus(recipe.corpus), (recipe.source, recipe.target)
        scores, _ = evaluate(translator, corpus, TESTS, *languages, truncate=recipe.truncate)
        print(score_table(scores))
        write_scores(scores, path, recipe=dataclasses.asdict(recipe))

    return scored_once(recipe, folder, score)


def table(results: dict[str, list[list[dict]]], size: str) -> str:
    """Return the Markdown table: each encoding's BLEU, mean ± spread over the seeds, and the paper's."""
    rows = []
    for encoding, runs in results.items():
        cells = [spread([run[i]["bleu"] for run in runs]) for i in range(len(TESTS) + 1)]
        lowercased = spread([run[-1]["bleu_lowercased"] for run in runs])
        rows.append((f"{encoding}_{size}", str(len(runs)), *cells, lowercased))
    for row in PAPER["table1"]:
        name = f"paper: {row['positions']}, {row['model']}, {row['corpus']}, {row['steps']:,} steps"
        label, bleu = f"{name} ({row['study']})", str(row["bleu"])
        if row["positions"] != "pope":  # quoted from others, on a test set that is not stated
            label, bleu = f"{label}: {bleu}", ""
        rows.append((label, "", *("" for _ in TESTS), bleu, ""))
    head = ("positions", "seeds", *TESTS, "all", "all, lowercased")
    first = next(iter(results.values()))[0][0]
    note = "The paper's rows are its Table 1, without the case, the tokenizer and other papers' test sets."
    differs = "" if size in ("base", "big") else f" Its models are base and big, ours {size}."
    signatures = (f"{name}: `{first['signatures'][name]}`" for name in ("bleu", "bleu_lowercased"))
    return "\n".join([markdown_table(head, rows), "", note + differs, "", *signatures])


if __name__ == "__main__":
    main(app)
