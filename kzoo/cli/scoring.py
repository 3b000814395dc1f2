"""Score translations of corpora."""

import sys
from dataclasses import asdict
from itertools import permutations
from pathlib import Path
from statistics import fmean
from typing import Annotated, Literal

import typer

from kzoo.cli.backend import start_backend
from kzoo.cli.options import (
    Beam,
    Files,
    From,
    GNMTPenalty,
    Penalty,
    Preset,
    To,
    Truncate,
    WithFiles,
    check_files_alone,
)
from kzoo.cli.own_corpus import own_corpus
from kzoo.cli.progress import progress_bar
from kzoo.cli.search import asked_search
from kzoo.errors import UserError
from kzoo.files import check_writable

app = typer.Typer()


@app.command(cls=WithFiles)
def evaluate(
    preset: Preset,
    corpus: Annotated[
        str | None,
        typer.Option(help="A corpus by name; by default the run's, or that of the preset's own scores."),
    ] = None,
    split: Annotated[
        list[str] | None, typer.Option(help="Can be repeated; all test sets by default.")
    ] = None,
    files: Files = None,
    source: From = None,
    target: To = None,
    beam_size: Beam = None,
    length_penalty: Penalty = None,
    gnmt: GNMTPenalty = None,
    truncate: Truncate = False,
    images: Annotated[Path | None, typer.Option(help="Folder with features SPLIT.npy.")] = None,
    shown: Annotated[
        Literal["right", "shuffled", "none"], typer.Option(help="Which image is shown with each sentence.")
    ] = "right",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the scores.")] = None,
):
    """Translate a corpus's splits, or your own files, and score them with sacreBLEU.

    A multilingual preset without --from and --to is scored in every direction, or in those that its recipe
    names, on one split: the first test set if none is named.
    """
    from kzoo.data import open_corpus, open_files
    from kzoo.evaluation.directions import write_directions
    from kzoo.evaluation.meteor import LEFT_OUT
    from kzoo.evaluation.scores import evaluate as evaluate_splits
    from kzoo.evaluation.scores import score_table, write_scores
    from kzoo.presets.description import scored_search
    from kzoo.presets.shelf import direction, load, locate, preset_name

    check_files_alone(files, corpus, split)
    if split and len(set(split)) < len(split):
        raise UserError(f"a split is named twice: {', '.join(split)}")
    folder = locate(preset)
    search = asked_search(scored_search(folder), beam_size, length_penalty, gnmt)
    if files:
        corpus, data = "files", open_files(test=files)
        # What is wrong with them is said before the model is loaded.
        data.pairs("test", *data.languages), data.more_references("test", data.languages[-1])
    elif corpus:
        data = open_corpus(corpus)
    else:
        data = own_corpus(folder, split or [])
        corpus = data.name
    if output:
        check_writable(output)
    for chosen in split or []:
        data.languages_in(chosen)
    start_backend()
    from kzoo.models.images import shown_images

    translator = load(preset)
    translator.search = search
    searched = {**search.entries(), "truncate": truncate}
    about = {"preset": preset_name(preset, folder), "corpus": corpus, "licence": data.licence}
    reads_images = bool(getattr(translator, "image_shape", None))
    if (images or shown != "right") and not reads_images:
        raise UserError(f"preset {preset} reads text only: leave {'--images' if images else '--shown'} out")
    if translator.multilingual and not (source or target or files):
        unseen, tuned = _seen(folder, translator.languages)
        scores = _every_direction(translator, data, split or [], truncate, unseen or (), tuned)
        print(search)
        if output:
            write_directions(scores, output, unseen, **about, **searched)
        return
    translator = direction(translator, source, target)
    source, target = translator.source_language, translator.target_language
    if files:
        data = open_files(test=files, languages=(source, target))
    if images:
        data = data.with_images(images)
    splits = split or _test_splits(data, corpus, source, target)
    counts = {name: len(data.sentences(name, source)) for name in splits}
    seen = None
    if reads_images:  # for all splits, before the first is translated: any of them may lack images
        seen = {name: shown_images(translator, data.images(name), counts[name], shown) for name in splits}
    with progress_bar("translating", sum(counts.values())) as advance:
        scores, translations = evaluate_splits(
            translator, data, splits, source, target, truncate=truncate, progress=advance, images=seen
        )
    print(f"{score_table(scores)}\n{search}")
    if reads_images and scores[0].meteor is None:
        print(LEFT_OUT, file=sys.stderr)
    ambiguous = _ambiguous_words(data, translations, source, target)
    for name, found in ambiguous.items():
        print(f"{name}: {found.accuracy:.1f} % of {found.words} words that only the picture tells apart")
    if output:
        if reads_images:
            about["shown"] = shown
        if ambiguous:
            about["ambiguous_words"] = {name: asdict(found) for name, found in ambiguous.items()}
        if files:
            about["files"] = [str(path) for path in files]
        write_scores(scores, output, **about, **searched)


Ways = list[tuple[str, str]] | None


def _seen(folder: Path, languages: list[str]) -> tuple[Ways, Ways]:
    """Return the directions that a run was not trained in, and those that its recipe names.

    Either is `None` if nothing says so, as for a preset that is not in its run.
    """
    from kzoo.training.corpus import recipe_directions
    from kzoo.training.run_folder import recorded_recipe

    try:
        recipe = recorded_recipe(folder.parent) if folder.name == "preset" else None
        seen = recipe_directions(recipe) if recipe else None
    except UserError:  # scores do not depend on it
        return None, None
    if seen is None:
        return None, None
    return [way for way in permutations(languages, 2) if way not in seen], seen if recipe.directions else None


def _every_direction(translator, data, splits: list[str], truncate: bool, unseen, tuned: Ways) -> dict:
    """Score a multilingual translator in every direction, or those it is tuned to; print BLEU, return all."""
    from kzoo.evaluation.directions import direction_table, evaluate_directions

    if len(splits) > 1:
        raise UserError("every direction is scored on one split: give --split once, or --from and --to")
    tests = splits or [name for name in data.splits if name.startswith("test")]
    shared = {
        name: [code for code in translator.languages if code in data.languages_in(name)] for name in tests
    }
    split, here = next(((name, codes) for name, codes in shared.items() if len(codes) > 1), (None, []))
    if split is None:
        raise UserError(
            f"corpus {data.name} has fewer than two of {', '.join(translator.languages)} "
            f"in {', '.join(tests)}: give another with --corpus, or --files"
        )
    every = list(permutations(here, 2))
    directions = [way for way in every if way in (tuned or every)] or every
    total = sum(len(data.sentences(split, source)) for source, _ in directions)
    with progress_bar("translating", total) as advance:
        scores = evaluate_directions(translator, data, split, directions, truncate=truncate, progress=advance)
    print(direction_table({way: score.bleu for way, score in scores.items()}, unseen))
    mean = fmean(score.bleu for score in scores.values())
    print(f"{split}: mean BLEU {mean:.1f} of {len(directions)} directions")
    targets = {}
    for (_, target), score in scores.items():
        targets.setdefault(score.signatures["bleu"], {})[target] = None
    for signature, codes in targets.items():
        print(f"BLEU into {', '.join(codes)}: `{signature}`")
    return scores


def _test_splits(data, corpus: str, source: str, target: str) -> list[str]:
    """Return the test splits that have both languages; `corpus` is the data's name in errors."""
    tests = [name for name in data.splits if name.startswith("test")]
    splits = [name for name in tests if {source, target} <= set(data.languages_in(name))]
    if not splits:
        raise UserError(
            f"corpus {corpus} has no test split in {source} and {target}; "
            f"it has {', '.join(data.languages)}: give another with --corpus, or --files"
        )
    return splits


def _ambiguous_words(data, translations: dict[str, list[str]], source: str, target: str) -> dict:
    """Return the scores of each split's ambiguous words; only Scenes marks them."""
    from kzoo.evaluation.ambiguous_words import score_ambiguous_words
    from kzoo.scenes import scenes

    if data.name != "scenes" or not any(one.ambiguous(source, target) for one in scenes("test")):
        return {}
    return {
        split: score_ambiguous_words(scenes(split), translated, source, target)
        for split, translated in translations.items()
    }
