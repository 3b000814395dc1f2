"""Compare two presets on a page."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli.backend import start_backend
from kzoo.cli.options import (
    Beam,
    Files,
    From,
    GNMTPenalty,
    Penalty,
    To,
    Truncate,
    WithFiles,
    check_files_alone,
)
from kzoo.cli.own_corpus import own_corpus
from kzoo.cli.pictures import shown_picture
from kzoo.cli.progress import progress_bar
from kzoo.cli.search import asked_search
from kzoo.errors import UserError
from kzoo.files import check_writable

app = typer.Typer()


@app.command(cls=WithFiles)
def report(
    path: Annotated[Path, typer.Argument(help="HTML file.")],
    first: Annotated[str, typer.Argument(help="A trained preset, such as one that reads text only.")],
    second: Annotated[str, typer.Argument(help="Another, such as one that reads pictures too.")],
    corpus: Annotated[
        str | None,
        typer.Option(help="A corpus by name; by default, as for evaluate, the first preset's own."),
    ] = None,
    split: Annotated[str | None, typer.Option(help="By default the first test set.")] = None,
    files: Files = None,
    source: From = None,
    target: To = None,
    number: Annotated[int, typer.Option("-n", min=1, help="Maximum number of sentences.")] = 50,
    beam_size: Beam = None,
    length_penalty: Penalty = None,
    gnmt: GNMTPenalty = None,
    truncate: Truncate = False,
    images: Annotated[
        Path | None, typer.Option(help="Folder with features SPLIT.npy; test.npy for --files.")
    ] = None,
    pictures: Annotated[
        Path | None, typer.Option(help="Folder of the pictures behind these features, to show them.")
    ] = None,
):
    """Write a page with two presets' translations side by side, largest differences first, and their BLEU."""
    from kzoo.data import open_corpus, open_files
    from kzoo.data.features import FeatureFile
    from kzoo.presets.description import scored_search
    from kzoo.presets.shelf import direction, load, locate, preset_name

    check_files_alone(files, corpus, split)
    if pictures and not images:
        raise UserError("--pictures needs --images: features name the picture of each sentence")
    folders = [locate(name) for name in (first, second)]
    if files:
        data = open_files(test=files)
        # What is wrong with them is said before the models are loaded.
        data.pairs("test", *data.languages), data.more_references("test", data.languages[-1])
    else:
        data = open_corpus(corpus) if corpus else own_corpus(folders[0], [split] if split else [])
    split = split or next(name for name in data.splits if name.startswith("test"))
    data.languages_in(split)
    check_writable(path)
    names = tuple(map(preset_name, (first, second), folders))
    searches = [asked_search(scored_search(folder), beam_size, length_penalty, gnmt) for folder in folders]
    if names[0] == names[1]:
        names = first, second
    start_backend()
    from kzoo.evaluation.report import cases, write_report
    from kzoo.evaluation.significance import compare_bleu, comparison_table

    translators = []
    for name, search in zip((first, second), searches, strict=True):
        translator = load(name)
        translator.search = search
        translators.append(direction(translator, source, target))
    ways = {(translator.source_language, translator.target_language) for translator in translators}
    if len(ways) > 1:
        raise UserError(f"{first} and {second} translate between different languages: {sorted(ways)}")
    way = ways.pop()
    if files:
        data = open_files(test=files, languages=way)
    sources, references = data.pairs(split, *way)
    drawn = data.images(split) if data.read_images else None
    if isinstance(drawn, FeatureFile):  # they are read, not shown
        drawn = None
    if images:
        if not any(getattr(translator, "image_shape", None) for translator in translators):
            raise UserError(f"presets {first} and {second} read text only: leave --images out")
        data = data.with_images(images)
    found = _picture_files(data.images(split), len(sources), pictures) if pictures else None
    translations = _translations(translators, sources, data, split, truncate)
    chosen = cases(sources, references, *translations)[:number]
    if found:
        drawn = {case.number: shown_picture(found[case.number]) for case in chosen}
    where = files[0].name if files else f"{data.name}, {split}"
    more = data.more_references(split, way[1])
    compared = compare_bleu(list(zip(names, translations, strict=True)), references, way[1], more)
    write_report(path, f"{names[0]} and {names[1]} on {where}", names, chosen, drawn, compared, way)
    print(comparison_table(*compared))
    for name, search in zip(names, searches, strict=True):
        print(f"{name}: {search}")


def _picture_files(features, count: int, folder: Path) -> list[Path]:
    """Return each sentence's picture: a file in the folder, found by the name in features `(count, …)`.

    Raises:
        UserError: the numbers of features and sentences differ, or a file is missing.
    """
    from kzoo.models.images import image_rows

    image_rows(features, count, features.shape[1:])
    files = [folder / features.names[row] for row in features.order]
    missing = [file for file in dict.fromkeys(files) if not file.is_file()]
    if missing:
        more = f", and {len(missing) - 1:,} more" if len(missing) > 1 else ""
        raise UserError(f"{missing[0]}: no such picture{more}; {features.path} has features of it")
    return files


def _translations(translators: list, sources: list[str], data, split: str, truncate: bool) -> list[list[str]]:
    """Return each translator's translations; all images are checked before the first translation."""
    from kzoo.models.images import image_rows

    options = [
        {"images": image_rows(data.images(split), len(sources), translator.image_shape, translator.extractor)}
        if getattr(translator, "image_shape", None)
        else {}
        for translator in translators
    ]
    with progress_bar("translating", len(translators) * len(sources)) as advance:
        return [
            translator.translate(sources, truncate=truncate, progress=advance, split_sentences=False, **shown)
            for translator, shown in zip(translators, options, strict=True)
        ]
