"""The end of `kzoo train`: how good the model is on the run's own test set."""

from pathlib import Path
from typing import TYPE_CHECKING

from kzoo.cli.console import open_translator

if TYPE_CHECKING:
    from kzoo.data import Corpus
    from kzoo.training.recipe import Recipe


def score_run(folder: Path, recipe: "Recipe", data: "Corpus"):
    """Print how good a finished run's model is on the run's own test set; write it to `report.html`, too.

    A model of several languages gets a table of its directions alone; a fine-tuned one is compared with what
    it was before.
    """
    from kzoo.cli.text_to_score import directions_to_score
    from kzoo.evaluation.directions import evaluate_directions, summarize_directions
    from kzoo.evaluation.quality import examples, most_helpful, scores_with_intervals, write_quality
    from kzoo.evaluation.scores import evaluate as evaluate_splits
    from kzoo.evaluation.scores import markdown_table
    from kzoo.presets.shelf import locate
    from kzoo.training.run_folder import START

    preset = locate(str(folder / "preset"))
    translator = open_translator(preset, preset.search, "auto")
    truncate = recipe.too_long != "error"
    if recipe.languages:
        name, directions, unseen = directions_to_score(preset.folder, data, [], recipe.languages)
        scores = evaluate_directions(translator, data, name, directions, truncate=truncate)
        print(summarize_directions(scores, unseen or ()))
        return
    languages = recipe.source, recipe.target
    sources, references = data.pairs("test", *languages)
    more = data.more_references("test", recipe.target)

    def translated(translator) -> list[str]:
        return evaluate_splits(translator, data, ["test"], *languages, truncate=truncate)[1]["test"]

    translations = translated(translator)
    scores = scores_with_intervals(translations, references, recipe.target, more)
    chosen = examples(sources, references, translations)
    if (folder / START).exists():
        start = locate(str(folder / START))
        before = translated(open_translator(start, start.search, "auto"))
        before = scores_with_intervals(before, references, recipe.target, more)
        scores = [*(score._replace(name=f"{score.name}, before") for score in before), *scores]
    advice = most_helpful(folder / "history.csv") if recipe.cooldown else ""
    print("\nThe best, the median and the worst translations of the test set\n")
    for case in chosen:
        print(f"source:      {case.source}\nreference:   {case.reference}")
        print(f"translation: {case.translations[0]}\n")
    print(markdown_table(("score", "test set", "95 % interval"), (score.cells for score in scores)))
    print("\n" + "\n".join(f"{score.name}: `{score.signature}`" for score in scores))
    if advice:
        print(f"\n{advice}")
    page = folder / "report.html"
    write_quality(page, folder.name, scores, chosen, languages, len(sources), advice)
    print(f"\nthe same as a page: {page}")
