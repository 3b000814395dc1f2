"""The image-text paper's tables: models of text alone compared with models that read pictures.

    python -m training.image_text.tables scenes --source en --target de --seeds 1,2,3
    python -m training.image_text.tables scenes --source id --target zh --seeds 1,2,3
    python -m training.image_text.tables placeholders --seeds 1
    python -m training.image_text.tables photographs FEATURES --size base
    python -m training.image_text.tables photographs FEATURES --size base corpus=files source=id target=zh \
        train='["train.id","train.zh"]' val='["val.id","val.zh"]' test='["test.id","test.zh"]'

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints a Markdown
table of means and spreads, with the paper's numbers for the same languages below them, and writes it and the
results as JSON beside the runs.

`photographs` reproduces Ma et al. 2020, Tables I and II, on Multi30k or on your own files, with features
written by `kzoo features extract`. `scenes` compares the models on the built-in corpus, which the paper does
not have: BLEU, and the accuracy on words whose translation depends on the picture. Both score with the right
pictures, with shuffled ones, and with none. `placeholders` measures the cost of image attention without
information: on Multi30k's text, with zeros or random numbers as features.
"""

import dataclasses
import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from kzoo.cli import main
from kzoo.cli.options import Overrides
from kzoo.cli.text_to_score import splits_to_score
from kzoo.data.features import Extractor, FeatureFile, write_features
from kzoo.evaluation import evaluate, find_meteor
from kzoo.evaluation.ambiguous_words import score_scenes
from kzoo.evaluation.scores import METEOR_LEFT_OUT, markdown_table
from kzoo.files import atomic_write, write_json
from kzoo.images import CheckedImages, image_rows, shown_images
from kzoo.presets.image_text import PICTURE
from kzoo.training import Recipe
from kzoo.training.corpus import recipe_corpus
from training.paper_tables import (
    Runs,
    Size,
    numbers,
    paper_numbers,
    print_estimate,
    scored_once,
    show_markdown,
    spread,
    table_recipe,
)

FC7 = (4096,)
NOTHING_TO_SEE = {
    "zeros": lambda random, shape: np.zeros(shape),
    "noise": lambda random, shape: random.standard_normal(shape),
}
Seeds = Annotated[str, typer.Option(help="Numbers, comma-separated.")]
PAPER = paper_numbers(__file__)
RUNS = Path("runs/image_text")
FIXED = ("preset", "seed", "images", "model.image_shape")  # keys that the tables or their options set
app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)


@app.command()
def scenes(
    source: str = "en",
    target: str = "de",
    size: Size = "tiny",
    seeds: Seeds = "1,2,3",
    runs: Runs = RUNS,
    overrides: Overrides = None,
):
    """BLEU and accuracy on ambiguous words, of text alone and with pictures, on Scenes."""
    # Base has the paper's layers instead of the recipe's, and reads features unless it gets an image shape.
    overrides = [*(["model={}"] if size == "base" else []), *(overrides or [])]
    recipe = table_recipe("image_text_scenes", overrides, (*FIXED, "corpus", "source", "target"))
    recipe = dataclasses.replace(recipe, source=source, target=target)
    shown = {"model": {"image_shape": [*PICTURE], **recipe.model}} if size == "base" else {}
    models = {f"text_only_{size}": {}, f"image_text_{size}": shown}
    planned = planned_runs("scenes", recipe, models, seeds, runs)
    print_estimate("image_text_base" if size == "base" else "image_text_scenes", planned)
    compare(planned, runs / f"scenes_{size}_{source}_{target}.json")


@app.command()
def photographs(
    features: Annotated[Path, typer.Argument(help="Folder with SPLIT.npy.")],
    size: Size = "base",
    seeds: Seeds = "1",
    runs: Runs = RUNS,
    overrides: Overrides = None,
):
    """Tables I and II: a recurrent model, a Transformer on text, and one on text and pictures.

    With pictures, the test sets are those whose features are in FEATURES: the paper's is test_2016_flickr.
    """
    recipe = table_recipe("image_text_base", overrides or [], FIXED)
    shape = list(checked_features(recipe, features).shape[1:])
    models = {
        "lookup_zh_en" + ("" if size == "base" else "_tiny"): {"joint_vocabulary": False},
        f"text_only_{size}": {},
        f"image_text_{size}": {"images": str(features), "model": {**recipe.model, "image_shape": shape}},
    }
    name = f"photographs_{size}"
    planned = planned_runs(name, recipe, models, seeds, runs)
    print_estimate("image_text_base", planned)
    compare(planned, runs / f"{name}_{recipe.source}_{recipe.target}.json")


@app.command()
def placeholders(seeds: Seeds = "1", runs: Runs = RUNS, overrides: Overrides = None):
    """BLEU of tiny models on Multi30k, without features and with features without information."""
    overrides = ["epochs=15", *(overrides or [])]
    recipe = table_recipe("pope_multi30k", overrides, FIXED)
    folders = {name: runs / f"features_{name}" for name in NOTHING_TO_SEE}
    models = {"text": {"text_only_tiny": {}}}
    for name, folder in folders.items():
        options = {"images": str(folder), "model": {**recipe.model, "image_shape": list(FC7)}}
        models[name] = {"image_text_tiny": options}
    planned = {name: planned_runs(name, recipe, chosen, seeds, runs) for name, chosen in models.items()}
    print_estimate("pope_multi30k", sum(planned.values(), []))
    for name, its_runs in planned.items():
        if name in folders:
            placeholder_features(recipe, NOTHING_TO_SEE[name], folders[name], name)
        compare(its_runs, runs / f"{name}_{recipe.source}_{recipe.target}.json")


def planned_runs(
    name: str, recipe: Recipe, models: dict[str, dict], seeds: str, runs: Path
) -> list[tuple[Recipe, Path]]:
    """Return the recipes and the folders of models.

    Args:
        name: prefix of the runs' folders.
        recipe: the models' recipe.
        models: for each preset, its changes to the recipe.
        seeds: the option `--seeds`.
        runs: the folder of runs.
    """
    found = []
    for seed in numbers(seeds):
        for preset, options in models.items():
            folder = runs / f"{name}_{preset}_{recipe.source}_{recipe.target}_{seed}"
            found.append((dataclasses.replace(recipe, preset=preset, seed=seed, **options), folder))
    return found


def compare(planned: list[tuple[Recipe, Path]], path: Path):
    """Train and score runs of one direction, write the results to a file, and show a table."""
    if not find_meteor():
        print(METEOR_LEFT_OUT, file=sys.stderr)
    results, seeds = {}, list(dict.fromkeys(recipe.seed for recipe, _ in planned))
    for recipe, folder in planned:
        for row, found in scores_of(recipe, folder).items():
            results.setdefault((recipe.preset, row), []).append(found)
    write_json(path, {"seeds": seeds, "scores": {", ".join(key): rows for key, rows in results.items()}})
    show_markdown(table(results, paper_rows(recipe.source, recipe.target)), path)


def paper_rows(source: str, target: str) -> list[dict]:
    """Return the rows of the paper's table for a direction; none if it has no such table."""
    table = PAPER.get(f"{source}_{target}", {"rows": []})
    return [{**row, "model": f"paper, {table['table']}: {row['model']}"} for row in table["rows"]]


def checked_features(recipe: Recipe, folder: Path) -> FeatureFile:
    """Return the features of the training text, after checking those of the other splits."""
    corpus = recipe_corpus(recipe).with_images(folder)
    trained = corpus.images("train")
    for split in (recipe.validation, *tests_of(recipe, corpus, folder)):
        count = len(corpus.sentences(split, recipe.source))
        image_rows(corpus.images(split), count, trained.shape[1:], dataclasses.asdict(trained.extractor))
    return trained


def tests_of(recipe: Recipe, corpus, folder: str | Path | None) -> list[str]:
    """Return the test sets to score: those with features in a folder; without a folder or any, all."""
    tests = splits_to_score(corpus, recipe.source, recipe.target)
    return [name for name in tests if folder and Path(folder, f"{name}.npy").expanduser().is_file()] or tests


def placeholder_features(recipe: Recipe, draw: Callable, folder: Path, name: str) -> Path:
    """Write features without information, by `draw`, for all sentences of a corpus; return their folder.

    `draw` makes features from a NumPy generator and a shape; `name` is the extractor's name.
    """
    corpus = recipe_corpus(recipe)
    for seed, split in enumerate(corpus.splits):
        lines = [str(line) for line in range(len(corpus.sentences(split, recipe.source)))]
        rows = partial(one_by_one, draw, seed)
        write_features(folder / f"{split}.npy", rows, lines, Extractor(name, "none", "none"))
        with atomic_write(folder / f"{split}.txt") as file:
            file.write_text("\n".join(lines) + "\n")
    return folder


def one_by_one(draw: Callable, seed: int, lines: list[str]):
    """Yield features without information for each line, `(1, D_img)`."""
    for line in lines:  # one generator per line, because writing may resume at any line
        random = np.random.default_rng((seed, int(line)))
        yield draw(random, (1, *FC7)).astype("float16")


def scores_of(recipe: Recipe, folder: Path) -> dict[str, dict]:
    """Train and score a run on each test set with each kind of pictures, or read its scores."""

    def score_all(translator, path: Path):
        corpus, scores = recipe_corpus(recipe), {}
        for split in tests_of(recipe, corpus, recipe.images):
            for name, images in pictures(translator, corpus, split).items():
                scores[f"{split}{name}"] = score(translator, recipe, corpus, split, images)
        write_json(path, {"recipe": dataclasses.asdict(recipe), "scores": scores})

    return scored_once(recipe, folder, score_all)


def score(translator, recipe: Recipe, corpus, split: str, images) -> dict:
    """Translate and score a test set; on Scenes, also score the ambiguous words."""
    languages, shown = (recipe.source, recipe.target), {split: images}
    (scored,), translated = evaluate(translator, corpus, [split], *languages, shown, truncate=recipe.truncate)
    scores = dataclasses.asdict(scored)
    if corpus.name == "scenes":
        for found in score_scenes(translated, *languages).values():
            scores |= {**dataclasses.asdict(found), "accuracy": found.accuracy}
    return scores


def pictures(translator, corpus, split: str) -> dict[str, CheckedImages | None]:
    """Return a test set's pictures in the right order, shuffled, and blank (grey, or zero features)."""
    if translator.image_shape is None:
        return {"": None}
    found = corpus.images(split)
    return {
        f", {title}": shown_images(translator, found, len(found), shown)
        for title, shown in (("right pictures", "right"), ("shuffled", "shuffled"), ("none", "none"))
    }


def table(results: dict[tuple[str, str], list[dict]], paper: Sequence[dict] = ()) -> str:
    """Return the Markdown table: means ± spreads over the seeds, and the paper's rows."""
    columns = {
        "bleu": "BLEU",
        "chrf2": "chrF2",
        "meteor": "METEOR",
        "accuracy": "accuracy on ambiguous words",
    }
    first = next(iter(results.values()))[0]
    # Without Java, runs have no METEOR.
    ours = {n for n in columns if all(row.get(n) is not None for rows in results.values() for row in rows)}
    shown = {
        name: title for name, title in columns.items() if name in ours or any(name in row for row in paper)
    }
    cells = [
        (preset, split, str(len(rows)), *(spread([r[n] for r in rows]) if n in ours else "" for n in shown))
        for (preset, split), rows in results.items()
    ]
    cells += [(row["model"], "Multi30k", "", *(str(row.get(n, "")) for n in shown)) for row in paper]
    lines = [markdown_table(("model", "test set", "seeds", *shown.values()), cells, left=2)]
    if paper:
        tiny = any(preset.endswith("_tiny") for preset, _ in results)
        lines += ["", "The paper's own Transformers are of base size" + (", ours tiny." if tiny else ".")]
    counts = (
        f"{first['words']} ambiguous words in {first['sentences']} sentences; " if "words" in first else ""
    )
    return "\n".join([*lines, "", f"{counts}`{first['signatures']['bleu']}`"])


if __name__ == "__main__":
    main(app)
