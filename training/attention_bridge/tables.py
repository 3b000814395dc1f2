"""The attention bridge paper's tables: BLEU by direction, a pair left out, sentence embeddings, the penalty.

    python -m training.attention_bridge.tables table1 --size tiny
    python -m training.attention_bridge.tables figure1 --size tiny
    python -m training.attention_bridge.tables table2 --size tiny
    python -m training.attention_bridge.tables table3 --size tiny

Each run is a folder under `--runs`; finished runs are not repeated, stopped ones resume. Prints Markdown
tables with the paper's numbers beside ours, and writes them and the results as JSON beside the runs.
`--size base` has the paper's sizes and needs a GPU.

`--budget` chooses how long each model is trained. With `direction`, each direction has as many updates as in
the whole many-to-many model, whose batches the recipe counts. With `model`, each model has 100,000 updates,
with the rate halved after 50,000 and then every 10,000, as in the authors' toolkit.

Reproduces Vázquez et al. 2019, Tables 1 to 3 and Figure 1, on Multi30k's test_2016_flickr. The tables show
lowercased BLEU, as in the paper; the JSON has cased BLEU too.
"""

import csv
import dataclasses
import math
import sys
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import combinations, permutations
from pathlib import Path
from typing import Annotated, Literal

import keras
import typer

from kzoo.cli import main
from kzoo.cli.options import Overrides
from kzoo.data import open_corpus
from kzoo.data.language_pairs import language_pairs
from kzoo.errors import UserError, nearest
from kzoo.evaluation.directions import direction_table, evaluate_directions, plot_directions, write_directions
from kzoo.evaluation.figures import COLOURS, picture
from kzoo.evaluation.scores import markdown_table
from kzoo.files import write_json
from kzoo.presets import load
from kzoo.presets.attention_bridge import BASE, TINY
from kzoo.training import Recipe, make_recipe
from kzoo.training.corpus import recipe_corpus, recipe_directions
from kzoo.training.run import planned_steps
from kzoo.training.tasks import recipe_task
from training.attention_bridge.glove import GloVe, bag_of_vectors, co_occurrences, glove_examples
from training.attention_bridge.senteval import SEEDS, TaskScores, evaluate_embeddings, senteval_table
from training.attention_bridge.senteval_data import senteval_examples, senteval_tasks
from training.paper_tables import (
    Runs,
    Size,
    add_results,
    paper_numbers,
    print_estimate,
    results_in,
    scored_once,
    show_markdown,
    table_recipe,
)

LANGUAGES = ("en", "de", "fr", "cs")
SPLIT = "test_2016_flickr"
POOLINGS = ("flatten", "mean")
PAPER = paper_numbers(__file__)
# Keys that the tables or their options set.
FIXED = (
    "preset",
    "corpus",
    "languages",
    "directions",
    "centre",
    "left_out",
    "monolingual",
    "seed",
    "model.bridge",
)
# The authors' scripts use each model after 91,000 updates; their toolkit halves the rate as here.
MODEL_BUDGET = {"batches_per_epoch": 10_000, "epochs": 10, "halve_after": 5}
# The six settings of Table 1, as changes to the recipe of the whole many-to-many model.
SETTINGS = {
    "bilingual": {"model": {"bridge": False}},
    "bilingual_bridge": {},
    "centre_en": {"centre": "en", "monolingual": False},
    "centre_en_mono": {"centre": "en", "monolingual": True},
    "m2m": {"monolingual": False},
    "m2m_mono": {"monolingual": True},
}
# Figure 1's bars, by the names of Table 1's settings.
FIGURE_1 = {
    "m2m_mono": "many-to-many with monolingual pairs",
    "left_out": "the same without the pair",
    "bilingual": "bilingual, without bridge",
}
CORRELATIONS = ("SICK-R", "STS-B")  # other tasks of Table 2 have accuracies

app = typer.Typer(no_args_is_help=True, add_completion=False, help=__doc__)
Directions = Annotated[
    str, typer.Option(help="Directions of bilingual models, comma-separated; by default all.")
]
Budget = Annotated[
    Literal["direction", "model"], typer.Option(help="What has the same number of updates everywhere.")
]
Seed = Annotated[int, typer.Option(help="Seed of every run.")]
Seeds = Annotated[int, typer.Option(min=1, max=len(SEEDS), help="Number of SentEval's seeds.")]
RUNS = Path("runs/attention_bridge")
Run = tuple[Recipe, Path]  # a run's recipe and its folder
SENTEVAL_MINUTES = 17  # of an embedding, with five seeds, on a CPU core


@app.command()
def table1(
    size: Size = "tiny",
    runs: Runs = RUNS,
    seed: Seed = 1,
    budget: Budget = "direction",
    settings: Annotated[str, typer.Option(help="Settings, comma-separated.")] = ",".join(SETTINGS),
    directions: Directions = "",
    overrides: Overrides = None,
):
    """BLEU of all directions in the paper's six settings."""
    recipe, names = whole_recipe(size, seed, overrides, budget), settings.split(",")
    chosen = chosen_directions(directions)
    for name in names:
        if name not in SETTINGS:
            raise UserError(f"no setting {name!r}: {nearest(name, list(SETTINGS))}")
    planned = {name: setting_runs(name, recipe, budget, chosen, size, runs) for name in names}
    print_estimate(recipe_name(size), sum(planned.values(), []))
    path = runs / f"table1_{size}.json"
    # Keep the results of other calls with this recipe and budget: other settings, and other directions of
    # bilingual models.
    results = results_in(path)
    about = results.pop("recipe", None), results.pop("budget", None)
    if None in about or (make_recipe(about[0], str(path)), about[1]) != (recipe, budget):
        if results:
            print(f"{path}: removing results of another or unknown recipe or budget", file=sys.stderr)
        results = {}
    for name in names:
        scores = all_scores(planned[name])
        if not name.startswith("bilingual"):
            plot_directions(*lowercased_bleu(scores), runs / f"{name}_{size}.png", lowercased=True)
        results[name] = {**results.get(name, {}), **scores}
        write_json(path, {"recipe": dataclasses.asdict(recipe), "budget": budget, **results})
    tables = [directions_text(name, rows, PAPER["table1"][name]) for name, rows in results.items()]
    budgets = budget_table(row for rows in results.values() for row in rows.values())
    show_markdown("\n\n".join([beside_the_paper(recipe), budgets, *tables]), path)


@app.command()
def figure1(
    size: Size = "tiny",
    runs: Runs = RUNS,
    seed: Seed = 1,
    budget: Budget = "direction",
    overrides: Overrides = None,
):
    """BLEU of each direction with three models: the best, the same without the pair, and a bilingual one.

    The best model is many-to-many with monolingual pairs. The bilingual models have no bridge. For models
    without a pair, the paper has a figure but no numbers.
    """
    recipe, results = whole_recipe(size, seed, overrides, budget), {}
    whole = part_of(recipe, budget, **SETTINGS["m2m_mono"]), runs / f"m2m_mono_{size}"
    left_out = {
        pair: (
            part_of(recipe, budget, monolingual=True, left_out="-".join(pair)),
            runs / f"without_{'_'.join(pair)}_{size}",
        )
        for pair in combinations(LANGUAGES, 2)
    }
    alone = bilingual_runs(recipe, budget, "bilingual", chosen_directions(""), size, runs / "bilingual")
    print_estimate(recipe_name(size), [whole, *left_out.values(), *alone.values()])
    of_whole = scores_of(*whole)
    for pair, run in left_out.items():
        of_left_out = scores_of(*run)
        for name in ("-".join(pair), "-".join(pair[::-1])):
            models = {"m2m_mono": of_whole, "left_out": of_left_out, "bilingual": scores_of(*alone[name])}
            results[name] = {model: scores[name] for model, scores in models.items()}
    path = runs / f"figure1_{size}.json"
    write_json(path, results)
    bars = {
        label: {name: rows[model]["bleu_lowercased"] for name, rows in results.items()}
        for model, label in FIGURE_1.items()
    }
    plot_systems(bars, path.with_suffix(".png"))
    rows = []
    for name, models in results.items():
        papers = [PAPER["table1"].get(model, {}).get(name) for model in FIGURE_1]
        ours = [models[model]["bleu_lowercased"] for model in FIGURE_1]
        rows.append((name, *map(bleu_cell, ours, papers)))
    budgets = budget_table(rows[model] for model in FIGURE_1 for rows in results.values())
    table = markdown_table(("direction", *bars), rows)
    show_markdown("\n\n".join([beside_the_paper(recipe), budgets, table]), path)


def plot_systems(systems: dict[str, dict[str, float]], path: Path):
    """Draw lowercased BLEU of several systems as bars, side by side for each direction.

    Args:
        systems: BLEU of each direction, such as "en-de", by the system's name.
        path: PNG, SVG or PDF file.
    """
    directions = list(dict.fromkeys(direction for bleu in systems.values() for direction in bleu))
    width = 0.8 / len(systems)
    with picture(path, size=(max(0.55 * len(directions) + 1.0, 4.0), 3.2)) as figure:
        axes = figure.subplots()
        for number, (name, bleu) in enumerate(systems.items()):
            places = [directions.index(direction) + (number + 0.5) * width - 0.4 for direction in bleu]
            axes.bar(places, list(bleu.values()), width, label=name, color=COLOURS[number % len(COLOURS)])
        axes.set_xticks(range(len(directions)), [name.replace("-", "–") for name in directions])
        axes.set_ylabel("BLEU, lowercased")
        figure.legend(loc="outside upper left", ncols=len(systems))


@app.command()
def table2(
    size: Size = "tiny",
    runs: Runs = RUNS,
    seed: Seed = 1,
    budget: Budget = "direction",
    seeds: Seeds = 5,
    overrides: Overrides = None,
):
    """SentEval scores of English embeddings: multilingual bridges, bilingual bridges and GloVe vectors.

    The baseline is the best bilingual model from English, for each task.
    """
    recipe = whole_recipe(size, seed, overrides, budget)
    senteval, bilinguals, manys, trained = SentEval(runs, size, SEEDS[:seeds]), {}, {}, []
    name, from_english = "bilingual_bridge", [f"en-{language}" for language in LANGUAGES[1:]]
    alone = bilingual_runs(recipe, budget, name, from_english, size, runs / name)
    many = {
        name: (part_of(recipe, budget, **SETTINGS[name]), runs / f"{name}_{size}")
        for name in ("centre_en_mono", "m2m_mono")
    }
    embeddings = len(POOLINGS) * (len(alone) + len(many)) + 1
    unscored = embeddings - len([*runs.glob(f"senteval_*_{size}_{seeds}_seeds.json")])
    print_estimate(recipe_name(size), [*alone.values(), *many.values()], SENTEVAL_MINUTES * max(0, unscored))
    for direction, (values, folder) in alone.items():
        trained += scores_of(values, folder).values()
        bilinguals |= senteval.of_bridge(f"{name}_{direction}", values)
    for setting, (values, folder) in many.items():
        trained += scores_of(values, folder).values()
        manys |= senteval.of_bridge(setting, values)
    same_words = runs / f"m2m_mono_{size}"
    columns = {"GloVe-BoW": senteval.scores("GloVe-BoW", recipe, lambda: glove_bag(recipe, load(same_words)))}
    for pooling in POOLINGS:
        columns[f"baseline, {pooling}"] = best_of([bilinguals[n] for n in bilinguals if n.endswith(pooling)])
    columns |= manys
    path = runs / f"table2_{size}.json"
    models = {name: [dataclasses.asdict(task) for task in scores] for name, scores in columns.items()}
    write_json(path, {"seeds": seeds, "models": models})
    papers = {f"paper: {name}": papers_column(scores) for name, scores in PAPER["table2"].items()}
    table = senteval_table({**columns, **papers})
    show_markdown("\n\n".join([beside_the_paper(recipe), budget_table(trained), table]), path)


@app.command()
def table3(
    size: Size = "tiny",
    runs: Runs = RUNS,
    seed: Seed = 1,
    budget: Budget = "direction",
    directions: Directions = "",
    overrides: Overrides = None,
):
    """BLEU of bilingual models with a bridge, trained with and without the penalty."""
    recipe = whole_recipe(size, seed, overrides, budget, (*FIXED, "model.penalty_weight"))
    chosen, name = chosen_directions(directions), "bilingual_bridge"
    no_penalty = dataclasses.replace(recipe, model={**recipe.model, "penalty_weight": 0.0})
    halves = {
        "with": bilingual_runs(recipe, budget, name, chosen, size, runs / name),
        "without": bilingual_runs(no_penalty, budget, name, chosen, size, runs / f"{name}_no_penalty"),
    }
    print_estimate(recipe_name(size), [run for half in halves.values() for run in half.values()])
    results = {half: all_scores(its_runs.values()) for half, its_runs in halves.items()}
    path = runs / f"table3_{size}.json"
    write_json(path, results)
    papers = {"with": PAPER["table1"][name], **PAPER["table3"]}
    tables = [directions_text(f"{half} penalty", results[half], papers[half]) for half in results]
    budgets = budget_table(row for rows in results.values() for row in rows.values())
    show_markdown("\n\n".join([beside_the_paper(recipe), budgets, *tables]), path)


def whole_recipe(
    size: str,
    seed: int,
    overrides: list[str] | None,
    budget: str = "direction",
    fixed: tuple[str, ...] = FIXED,
) -> Recipe:
    """Return the recipe of the many-to-many model with monolingual pairs."""
    given = MODEL_BUDGET if budget == "model" else {}
    recipe = table_recipe(recipe_name(size), overrides or [], (*fixed, *given))
    return dataclasses.replace(recipe, seed=seed, **given)


def recipe_name(size: str) -> str:
    """Return the name of the recipe of a size."""
    return f"attention_bridge_m2m{'' if size == 'base' else '_' + size}"


def part_of(recipe: Recipe, budget: str, **changes) -> Recipe:
    """Return the whole model's recipe with changes; with the budget `"direction"`, with its share of batches.

    A recipe without `batches_per_epoch` needs no share: an epoch is one pass over the text of its directions.
    """
    part = dataclasses.replace(recipe, **changes)
    if budget == "model":
        return part
    directions, of_all = len(recipe_directions(part)), len(recipe_directions(recipe))
    batches = math.ceil(recipe.batches_per_epoch * directions / of_all)
    return dataclasses.replace(part, batches_per_epoch=batches)


def chosen_directions(directions: str) -> list[str]:
    """Return the directions in a comma-separated list; if it is empty, all twelve."""
    if not directions:
        return ["-".join(pair) for pair in permutations(LANGUAGES, 2)]
    for direction in directions.split(","):
        language_pairs(LANGUAGES, only=[direction])
    return directions.split(",")


def setting_runs(
    name: str, recipe: Recipe, budget: str, directions: list[str], size: str, runs: Path
) -> list[Run]:
    """Return the runs of a setting of Table 1."""
    if name.startswith("bilingual"):
        return [*bilingual_runs(recipe, budget, name, directions, size, runs / name).values()]
    return [(part_of(recipe, budget, **SETTINGS[name]), runs / f"{name}_{size}")]


def bilingual_runs(
    recipe: Recipe, budget: str, name: str, directions: list[str], size: str, folder: Path
) -> dict[str, Run]:
    """Return the run of a bilingual model for each direction; its folder is `FOLDER_DIRECTION_SIZE`."""
    return {
        direction: (
            bilingual(recipe, budget, name, direction, size),
            folder.with_name(f"{folder.name}_{direction}_{size}"),
        )
        for direction in directions
    }


def all_scores(runs: Iterable[Run]) -> dict[str, dict]:
    """Return the scores of runs by direction."""
    scores = {}
    for run in runs:
        scores |= scores_of(*run)
    return scores


def bilingual(recipe: Recipe, budget: str, name: str, direction: str, size: str) -> Recipe:
    """Return the recipe of a model of one direction, with or without the bridge."""
    return part_of(
        recipe,
        budget,
        preset="attention_bridge_bilingual" + ("" if size == "base" else "_" + size),
        languages=direction.split("-"),
        directions=[direction],
        model={**recipe.model, **SETTINGS[name].get("model", {})},
    )


def scores_of(recipe: Recipe, folder: Path) -> dict[str, dict]:
    """Train and score a run in its directions, by default all between its languages; or read its scores.

    Each direction's row also has the run's `"budget"`.
    """

    def score(translator, path: Path):
        seen = recipe_directions(recipe)
        scored = seen if recipe.directions else list(permutations(recipe.languages, 2))
        corpus = open_corpus(recipe.corpus)
        scores = evaluate_directions(translator, corpus, SPLIT, scored, truncate=recipe.truncate)
        write_directions(scores, path, set(scored) - set(seen), recipe=dataclasses.asdict(recipe))

    rows = scored_once(recipe, folder, score)
    path = folder / "scores.json"
    if "budget" not in results_in(path):
        add_results(path, budget=budget_of(recipe, folder))
    budget = {"run": folder.name, **results_in(path)["budget"]}
    return {f"{row['source']}-{row['target']}": {**row, "budget": budget} for row in rows}


def budget_of(recipe: Recipe, folder: Path) -> dict[str, float]:
    """Return how long a finished run was trained.

    Returns:
        updates: weight updates of the model.
        updates_a_direction: the same, divided by the number of directions.
        passes: passes over the text of all directions.
        final_rate: the learning rate of the last epoch.
    """
    with open(folder / "history.csv", newline="") as file:
        epochs = list(csv.DictReader(file))
    one_pass = dataclasses.replace(recipe, batches_per_epoch=0)
    task, translator = recipe_task(one_pass, recipe_corpus(recipe)), load(folder)
    sides = [
        translator.tokenizers[language](text)
        for language, text in zip(task.languages, task.sides, strict=True)
    ]
    batches = len(task.batches(translator, "train", task.sides, sides))
    epoch = recipe.batches_per_epoch or batches
    updates = planned_steps(dataclasses.replace(recipe, epochs=len(epochs)), epoch)
    return {
        "updates": updates,
        "updates_a_direction": updates / len(recipe_directions(recipe)),
        "passes": updates * recipe.accumulate / batches,
        "final_rate": float(epochs[-1]["learning_rate"]),
    }


def budget_table(rows: Iterable[dict]) -> str:
    """Return a Markdown table of the budgets in directions' rows, each run once, and of the paper's."""
    budgets = {row["budget"]["run"]: row["budget"] for row in rows}
    cells = [
        (
            run,
            f"{budget['updates']:,}",
            f"{budget['updates_a_direction']:,.0f}",
            f"{budget['passes']:.1f}",
            f"{budget['final_rate']:.3g}",
        )
        for run, budget in budgets.items()
    ]
    papers = PAPER["budget"]
    cells.append(("paper, each model", f"{papers['updates']:,}", "", "", f"{papers['final_rate']:.3g}"))
    return markdown_table(("run", "updates", "updates a direction", "passes", "final rate"), cells)


def beside_the_paper(recipe: Recipe) -> str:
    """Return a line about the paper's numbers and the differences between its system and the recipe's."""
    preset = TINY if recipe.preset.endswith("_tiny") else BASE
    ours = {**dataclasses.asdict(recipe), **preset, **recipe.model}
    papers = {**PAPER["system"], **PAPER["toolkit"]}
    differ = [f"{key} {ours[key]} ({value})" for key, value in papers.items() if ours[key] != value]
    differences = ", ".join(differ) or "nothing that the paper or its toolkit states"
    return f"The paper's numbers are in brackets or extra columns. Systems differ in: {differences}."


def bleu_cell(ours: float, papers: float | None) -> str:
    # The paper's two decimals, rounded half up, here and below; Python makes 35.25 the even 35.2.
    return f"{ours:.1f}" if papers is None else f"{ours:.1f} ({papers + 1e-9:.1f})"


def papers_column(scores: dict[str, float]) -> list[TaskScores]:
    """Return a column of the paper's Table 2 as SentEval's scores."""
    return [
        TaskScores(task, {"pearson" if task in CORRELATIONS else "accuracy": [score + 1e-9]})
        for task, score in scores.items()
    ]


def directions_text(name: str, rows: dict[str, dict], paper: dict[str, float]) -> str:
    """Return a setting's lowercased BLEU as a Markdown matrix, with unseen directions in italics."""
    signature = next(iter(rows.values()))["signatures"]["bleu_lowercased"]
    beside = {tuple(direction.split("-")): score for direction, score in paper.items()}
    table = direction_table(*lowercased_bleu(rows), beside)
    return f"{name} (BLEU, lowercased)\n\n{table}\n\n`{signature}`"


def lowercased_bleu(rows: dict[str, dict]) -> tuple[dict[tuple[str, str], float], list[tuple[str, str]]]:
    """Return lowercased BLEU by (source, target), and the unseen directions."""
    bleu = {(row["source"], row["target"]): row["bleu_lowercased"] for row in rows.values()}
    return bleu, [(row["source"], row["target"]) for row in rows.values() if row["unseen"]]


class SentEval:
    """SentEval's scores of embeddings. Each embedding's scores are in a file, written after every task.

    Args:
        runs: the folder of runs.
        size: the tables' size.
        seeds: seeds of SentEval's folds and classifiers.

    Raises:
        UserError: no task has files, or a task's are damaged; raised before anything is trained.
    """

    def __init__(self, runs: Path, size: str, seeds: Sequence[int]):
        self.runs, self.size, self.seeds = runs, size, list(seeds)
        if not (tasks := senteval_tasks()):
            raise UserError("senteval/ in KZOO_DATA has no task's files, such as rt-polarity.all")
        for task in tasks:
            senteval_examples(task)

    def scores(self, name: str, recipe: Recipe, make_embed: Callable) -> list[TaskScores]:
        """Score a model's embeddings on the tasks whose files exist, or read their scores.

        `make_embed` returns the function from sentences to vectors; it is called if a task has no scores yet.
        """
        several = f"{self.size}_{len(self.seeds)}_seeds"
        path = self.runs / f"senteval_{name.replace(', ', '_')}_{several}.json"
        about = {"seeds": self.seeds, "recipe": dataclasses.asdict(recipe)}
        found, known = results_in(path), {}
        if found and found["seeds"] == self.seeds and make_recipe(found["recipe"], str(path)) == recipe:
            known = found["tasks"]
        missing = [task for task in senteval_tasks() if task not in known]
        embed = make_embed() if missing else None
        for task in missing:
            (scored,) = evaluate_embeddings(embed, [task], self.seeds)
            known[task] = scored.scores
            write_json(path, {**about, "tasks": known})
            print(f"{name}: {task}")
        return [TaskScores(task, known[task]) for task in senteval_tasks()]

    def of_bridge(self, name: str, recipe: Recipe) -> dict[str, list[TaskScores]]:
        """Score both embeddings of a trained translator: M flattened, and the mean of M's rows."""
        folder = self.runs / f"{name}_{self.size}"
        return {
            f"{name}, {pooling}": self.scores(
                f"{name}, {pooling}", recipe, partial(bridge_embed, folder, pooling)
            )
            for pooling in POOLINGS
        }


def bridge_embed(folder: Path, pooling: str) -> Callable:
    return partial(load(folder).embed, language="en", pooling=pooling, truncate=True)


def glove_bag(recipe: Recipe, translator) -> Callable:
    """Return the bag of GloVe vectors, trained on the same English sentences in the same subwords."""
    tokenizer = translator.tokenizers["en"]
    tokens = tokenizer(open_corpus(recipe.corpus).sentences("train", "en"))
    keras.utils.set_random_seed(recipe.seed)  # for the order of examples in `fit`
    glove = GloVe(tokenizer.vocabulary_size(), dim=translator.backbone.matrix_shape[1], seed=recipe.seed)
    examples = glove_examples(co_occurrences(tokens, tokenizer.vocabulary_size()))
    glove.fit(**examples, batch_size=4096, epochs=15, verbose=0)
    return bag_of_vectors(glove.vectors(), tokenizer)


def best_of(models: list[list[TaskScores]]) -> list[TaskScores]:
    """Return for each task the scores of the best model, by the task's main score."""
    return [
        max(tasks, key=lambda task: task.mean(next(iter(task.scores)))) for tasks in zip(*models, strict=True)
    ]


if __name__ == "__main__":
    main(app)
