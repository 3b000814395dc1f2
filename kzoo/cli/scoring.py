"""`kzoo evaluate`, a preset's scores; `kzoo report`, two presets compared on a page."""

import sys
import warnings
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from kzoo.cli import options
from kzoo.cli.console import chosen_search, open_translator, progress_bar
from kzoo.cli.pictures import picture_files, shown_picture
from kzoo.errors import UserError
from kzoo.files import check_writable
from kzoo.text.languages import matching_code

if TYPE_CHECKING:
    from kzoo.data import Corpus
    from kzoo.hub import Preset

app = typer.Typer()


@app.command(cls=options.WithFiles)
def evaluate(
    preset: options.Preset,
    corpus: Annotated[
        str | None,
        typer.Option(help="A corpus's name; by default what the preset was trained or scored on."),
    ] = None,
    split: Annotated[
        list[str] | None,
        typer.Option(help="Split to score, such as test; can be repeated; by default all test sets."),
    ] = None,
    files: options.Files = None,
    source: options.From = None,
    target: options.To = None,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    truncate: options.Truncate = False,
    images: Annotated[
        Path | None, typer.Option(help="Folder with features SPLIT.npy; test.npy for --files.")
    ] = None,
    shown: Annotated[
        Literal["right", "shuffled", "none"],
        typer.Option(help="Picture shown with each sentence: its own, another sentence's, or none."),
    ] = "right",
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the scores.")] = None,
    engine: options.EngineOption = "auto",
    compute_type: options.ComputeType = "float32",
    device: options.DeviceOption = "auto",
):
    """Translate a corpus's splits, or your own files, and score them with sacreBLEU.

    Without --from and --to, a multilingual preset is scored on one split, by default the first test set, in
    all directions, or in the directions that its recipe names.
    """
    from kzoo.cli.text_to_score import (
        codes_of_text,
        corpus_to_score,
        directions_to_score,
        files_to_score,
        splits_to_score,
        text_under,
    )
    from kzoo.evaluation.ambiguous_words import score_scenes
    from kzoo.evaluation.directions import evaluate_directions, summarize_directions, write_directions
    from kzoo.evaluation.scores import METEOR_LEFT_OUT, find_meteor, score_table, write_scores
    from kzoo.evaluation.scores import evaluate as evaluate_splits
    from kzoo.presets.shelf import locate

    splits = list(dict.fromkeys(split or []))
    data = files_to_score(files, corpus, splits)  # before a preset is downloaded
    if output:
        check_writable(output, files or ())
    located = locate(preset)
    search = chosen_search(located, beam_size, length_penalty, gnmt, max_length)
    data = data or corpus_to_score(located, corpus, splits)
    translator = open_translator(located, search, engine, compute_type, device, {"pictures": images})
    if (images or shown != "right") and not translator.image_shape:
        raise UserError(f"preset {preset} reads text only: leave {'--images' if images else '--shown'} out")
    name = preset if "://" in preset else located.name  # a handle may name a revision
    about = {"preset": name, "corpus": data.name, "licence": data.licence}
    searched = {**search.entries(), "truncate": truncate, "engine": translator.engine}
    pictures = {"right": "", "shuffled": ", shuffled pictures", "none": ", no pictures"}[shown]
    how = f"{search}, {translator.engine}{', long sentences truncated' * truncate}{pictures}"

    among = [] if source or target or files else _languages_among(translator, data)
    if among:
        data = data.renamed(*among)
        name, directions, unseen = directions_to_score(located.folder, data, splits, among)
        if trained := told_trained_rows(preset, located, data, [name], directions):
            about["trained_rows"] = trained
        total = sum(len(data.sentences(name, code)) for code, _ in directions)
        with progress_bar("translating", total) as advance:
            scores = evaluate_directions(
                translator, data, name, directions, truncate=truncate, progress=advance
            )
        print(f"{summarize_directions(scores, unseen or ())}\n{how}")
        if output:
            write_directions(scores, output, unseen, **about, **searched)
        return

    direction = translator.named_direction(source, target)
    source, target = languages = codes_of_text(direction, source, target)
    about |= {"source": source, "target": target}
    data = text_under(data, files, languages)
    if images:
        data = data.with_images(images)
    splits = splits or splits_to_score(data, source, target)
    counts = {name: len(data.sentences(name, source)) for name in splits}
    if trained := told_trained_rows(preset, located, data, splits, [languages]):
        about["trained_rows"] = trained
    seen = None
    if translator.image_shape:  # of all splits, before translating: any of them may lack images
        about["shown"] = shown
        from kzoo.images import shown_images

        seen = {name: shown_images(translator, data.images(name), counts[name], shown) for name in splits}
    options = {"truncate": truncate, "images": seen, "direction": direction}
    with progress_bar("translating", sum(counts.values())) as advance:
        scores, translations = evaluate_splits(
            translator, data, splits, *languages, progress=advance, **options
        )
    print(f"{score_table(scores)}\n{how}")
    if translator.image_shape and not find_meteor():
        print(METEOR_LEFT_OUT, file=sys.stderr)
    if data.name == "scenes" and (words := score_scenes(translations, source, target)):
        about["ambiguous_words"] = {name: asdict(found) for name, found in words.items()}
        for name, found in words.items():
            print(f"{name}: {found.accuracy:.1f} % correct of {found.words} words that need the picture")
    if files:
        about["files"] = [str(path) for path in files]
    if output:
        write_scores(scores, output, **about, **searched)


def _languages_among(translator, data) -> list[str]:
    """Return the languages that a translator is scored among; none if it has a direction, or needs one.

    Of a model of a hundred languages, such as NLLB-200, they are the corpus's, in the corpus's codes.
    """
    if translator.multilingual:
        return translator.languages
    if any(translator.languages):  # a default direction, or half of it
        return []
    named, found = translator.source_languages, []
    for code in data.languages:
        if matching_code(code, named):
            found.append(code)
        elif several := [own for own in named if matching_code(code, [own])]:
            print(
                f"{code} of corpus {data.name} is left out, because it may be {' or '.join(several)}: "
                "to score it, give --from and --to",
                file=sys.stderr,
            )
    return found if len(found) > 1 else []


@app.command(cls=options.WithFiles)
def report(
    path: Annotated[Path, typer.Argument(help="HTML file.")],
    first: Annotated[str, typer.Argument(help="A trained preset, such as one that reads text only.")],
    second: Annotated[str, typer.Argument(help="Another one, such as one that reads pictures too.")],
    corpus: Annotated[
        str | None,
        typer.Option(help="A corpus's name; by default what the first preset was trained or scored on."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="Split; by default the first test set.")] = None,
    files: options.Files = None,
    source: options.From = None,
    target: options.To = None,
    number: Annotated[int, typer.Option("-n", min=1, help="Maximum number of sentences.")] = 50,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    truncate: options.Truncate = False,
    images: Annotated[
        Path | None, typer.Option(help="Folder with features SPLIT.npy; test.npy for --files.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder with the pictures of these features, to show them.")
    ] = None,
):
    """Write a page with two presets' BLEU and their translations side by side, largest differences first."""
    from kzoo.cli.text_to_score import (
        check_same_held_out,
        codes_of_text,
        corpus_to_score,
        files_to_score,
        text_under,
    )
    from kzoo.data.features import FeatureFile
    from kzoo.presets.shelf import locate

    if pictures and not images:
        raise UserError("--pictures needs --images: features name the picture of each sentence")
    splits = [split] if split else []
    data = files_to_score(files, corpus, splits)  # before presets are downloaded
    check_writable(path, files or ())
    presets = [locate(name) for name in (first, second)]
    data = data or corpus_to_score(presets[0], corpus, splits)
    split = split or next(name for name in data.splits if name.startswith("test"))
    if not files and not corpus:
        check_same_held_out(*(preset.folder for preset in presets), split)
    names = tuple(preset.name for preset in presets)
    if names[0] == names[1]:
        names = first, second
    searches = [chosen_search(preset, beam_size, length_penalty, gnmt, max_length) for preset in presets]
    translators = list(map(open_translator, presets, searches))
    from kzoo.evaluation.comparison import cases, compare_bleu, comparison_table, write_report
    from kzoo.images import shown_images

    directions = [translator.named_direction(source, target) for translator in translators]
    codes = [codes_of_text(direction, source, target) for direction in directions]
    if not all(matching_code(one, [other]) for one, other in zip(*codes, strict=True)):
        raise UserError(f"{first} and {second} translate between different languages: {codes}")
    source, target = languages = codes[0]
    data = text_under(data, files, languages)
    sources, references = data.pairs(split, *languages)
    trained = [
        told_trained_rows(name, preset, data, [split], [languages]).get(split, 0)
        for name, preset in zip(names, presets, strict=True)
    ]
    drawn = data.images(split) if data.read_images else None
    if isinstance(drawn, FeatureFile):  # features cannot be shown
        drawn = None
    if images:
        if not any(translator.image_shape for translator in translators):
            raise UserError(f"presets {first} and {second} read text only: leave --images out")
        data = data.with_images(images)
    seen = [  # by both, before translating: images may not fit
        shown_images(translator, data.images(split), len(sources)) if translator.image_shape else None
        for translator in translators
    ]
    found = picture_files(data.images(split), pictures) if pictures else None
    options = {"truncate": truncate, "split_sentences": False}
    with progress_bar("translating", len(translators) * len(sources)) as advance:
        translations = [
            translator.translate(sources, progress=advance, images=rows, direction=direction, **options)
            for translator, rows, direction in zip(translators, seen, directions, strict=True)
        ]
    chosen = cases(sources, references, *translations)[:number]
    if found:
        drawn = {case.number: shown_picture(found[case.number]) for case in chosen}
    where = files[0].name if files else f"{data.name}, {split}"
    more = data.more_references(split, target)
    compared = compare_bleu(list(zip(names, translations, strict=True)), references, target, more)
    title = f"{names[0]} and {names[1]} on {where}"
    write_report(path, title, names, chosen, drawn, compared, languages, len(sources), trained)
    print(comparison_table(*compared))
    for name, search in zip(names, searches, strict=True):
        print(f"{name}: {search}")


def told_trained_rows(
    name: str, preset: "Preset", data: "Corpus", splits: list[str], directions: list[tuple[str, str]]
) -> dict[str, int]:
    """Return how many rows of each split a preset was trained on, where known, and warn if there are some."""
    from kzoo.training.trained_rows import count_trained_rows

    counts = {split: count_trained_rows(preset.folder, data, split, directions) for split in splits}
    for split, count in counts.items():
        if count:
            rows = len(data.sentences(split, directions[0][0]))
            warnings.warn(
                f"{name} was trained on {count:,} of the {rows:,} rows of {split}: "
                "its score is higher than on new text",
                stacklevel=2,
            )
    return {split: count for split, count in counts.items() if count is not None}
