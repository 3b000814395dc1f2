"""The image-text paper's comparison on Scenes: text alone against pictures, the right ones and others.

    python training/image_text_tables.py scenes --source en --target de --seeds 1,2,3
    python training/image_text_tables.py scenes --source id --target zh --seeds 1,2,3

Each run is a folder under `--runs`; what is finished is not done again, what was stopped goes on. Prints a
Markdown table of means and spreads and writes the results as JSON beside the runs.

After Ma et al. 2020, Tables I and II, on made-up pictures that the paper did not have: BLEU and the accuracy
on words that only the picture tells how to translate, with the right pictures, shuffled ones, or plain grey.
"""

import dataclasses
import json
from pathlib import Path
from statistics import mean, stdev
from typing import Annotated

import numpy as np
import typer

from kzoo.data import open_corpus
from kzoo.data.scenes import scenes as scenes_of
from kzoo.evaluation import score_ambiguous_words, score_translations
from kzoo.files import whole_file
from kzoo.presets import load
from kzoo.training import Recipe, make_recipe, read_recipe, train

GREY = 127
app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


@app.callback()
def main():
    """Leaves Typer with commands by name."""


@app.command()
def scenes(
    source: str = "en",
    target: str = "de",
    seeds: Annotated[str, typer.Option(help="Numbers, with commas.")] = "1,2,3",
    runs: Annotated[Path, typer.Option(help="Where the runs are.")] = Path("runs/image_text"),
    overrides: Annotated[
        list[str] | None, typer.Argument(help="KEY=VALUE of the recipe, as epochs=15.")
    ] = None,
):
    """BLEU and accuracy on ambiguous words, text alone and with pictures, on the built-in set."""
    recipe = read_recipe(Path(__file__).parent / "image_text_scenes.toml", overrides or [])
    recipe = dataclasses.replace(recipe, source=source, target=target)
    results = {}
    for seed in map(int, seeds.split(",")):
        for preset in ("text_only_tiny", "image_text_tiny"):
            values = dataclasses.replace(recipe, preset=preset, seed=seed)
            scores = scores_of(values, runs / f"{preset}_{source}_{target}_{seed}")
            for pictures, row in scores.items():
                results.setdefault((preset, pictures), []).append(row)
    print(table(results))


def scores_of(recipe: Recipe, folder: Path) -> dict[str, dict]:
    """Train and score one run with each kind of pictures, or read the scores that it has."""
    path = folder / "scores.json"
    if not path.exists() or make_recipe(json.loads(path.read_text())["recipe"]) != recipe:
        train(recipe, folder)
        translator = load(folder)
        sentences, references = open_corpus("scenes").pairs("test", recipe.source, recipe.target)
        scores = {}
        for name, images in pictures(translator).items():
            translations = translator.translate(sentences, beam_size=recipe.beam_size, images=images)
            found = score_ambiguous_words(scenes_of("test"), translations, recipe.source, recipe.target)
            scores[name] = {
                **dataclasses.asdict(score_translations("test", translations, references, recipe.target)),
                **dataclasses.asdict(found),
                "accuracy": found.accuracy,
            }
        with whole_file(path) as file:
            file.write_text(json.dumps({"recipe": dataclasses.asdict(recipe), "scores": scores}, indent=1))
    return json.loads(path.read_text())["scores"]


def pictures(translator) -> dict[str, np.ndarray | None]:
    """Return the test set's pictures as they belong, in another order, and as plain grey."""
    if translator.image_shape is None:
        return {"": None}
    right = open_corpus("scenes").images("test")
    order = np.random.default_rng(0).permutation(len(right))
    return {"right": right, "shuffled": right[order], "none": np.full_like(right, GREY)}


def table(results: dict[tuple[str, str], list[dict]]) -> str:
    """Return the Markdown table: means ± spreads over the seeds."""
    lines = [
        "| model | pictures | seeds | BLEU | chrF2 | accuracy on ambiguous words |",
        "| --- | --- " + "| ---: " * 4 + "|",
    ]
    for (preset, shown), rows in results.items():
        cells = [spread([row[name] for row in rows]) for name in ("bleu", "chrf2", "accuracy")]
        lines.append(f"| {preset} | {shown} | {len(rows)} | {' | '.join(cells)} |")
    first = next(iter(results.values()))[0]
    counts = f"{first['words']} ambiguous words in {first['sentences']} sentences"
    return "\n".join([*lines, "", f"{counts}; `{first['signatures']['bleu']}`"])


def spread(values: list[float]) -> str:
    return f"{mean(values):.1f}" + (f" ± {stdev(values):.1f}" if len(values) > 1 else "")


if __name__ == "__main__":
    app()
