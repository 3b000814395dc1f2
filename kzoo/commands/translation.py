"""Translate, score, compare two presets."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from kzoo.commands.backend import start_backend
from kzoo.commands.options import Beam, From, GNMTPenalty, Penalty, Preset, To, Truncate, chosen_penalty
from kzoo.commands.progress import progress_bar
from kzoo.errors import UserError
from kzoo.files import check_writable, whole_file

app = typer.Typer()


@app.command()
def translate(
    preset: Preset,
    text: Annotated[list[str] | None, typer.Argument(help="Sentences; standard input by default.")] = None,
    source: From = None,
    target: To = None,
    file: Annotated[Path | None, typer.Option("--input", "-i", help="A file, a sentence a line.")] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to; standard output by default.")
    ] = None,
    beam_size: Beam = 5,
    length_penalty: Penalty = 1.0,
    gnmt: GNMTPenalty = None,
    n_best: Annotated[
        int,
        typer.Option(min=1, help="Translations of each: sentence number, score and text, with tabs between."),
    ] = 1,
    truncate: Truncate = False,
    image: Annotated[
        list[Path] | None,
        typer.Option(help="A sentence's picture, for presets that read one; once for each."),
    ] = None,
):
    """Translate a sentence, a file or standard input."""
    from kzoo.data.text_files import decode_lines, read_lines
    from kzoo.presets.shelf import direction, load, locate

    locate(preset)
    if text and file is not None:
        raise UserError("sentences and --input exclude each other: give one of them")
    if n_best > beam_size:
        raise UserError(f"{n_best} best translations need --beam {n_best} at least, not {beam_size}")
    if file is not None:
        sentences = read_lines(file).sentences
    elif text:
        sentences = decode_lines(
            "".join(f"{line}\n" for line in text).encode("utf-8", "surrogateescape"), "the arguments"
        )
    else:
        sentences = decode_lines(sys.stdin.buffer.read(), "standard input")
    if output:
        check_writable(output)
    start_backend()
    translator = direction(load(preset), source, target)
    if image and getattr(translator, "image_shape", None) is None:
        raise UserError(f"preset {preset} reads text only: leave --image out")
    with progress_bar("translating", len(sentences), shown=file is not None) as advance:
        results = translator.n_best(
            sentences,
            n_best,
            beam_size,
            chosen_penalty(length_penalty, gnmt),
            truncate=truncate,
            progress=advance,
            **({"images": image} if image else {}),
        )
    if n_best == 1:
        lines = [hypotheses[0].text for hypotheses in results]
    else:
        lines = [
            f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}"
            for number, hypotheses in enumerate(results, 1)
            for hypothesis in hypotheses
        ]
    content = "".join(line + "\n" for line in lines)
    if output is None:
        sys.stdout.write(content)
    else:
        with whole_file(output) as file:
            file.write_text(content, encoding="utf-8")


@app.command()
def evaluate(
    preset: Preset,
    corpus: Annotated[str, typer.Option(help="A corpus by name.")] = "multi30k",
    split: Annotated[
        list[str] | None, typer.Option(help="May be given again; all test sets by default.")
    ] = None,
    files: Annotated[
        tuple[Path, Path] | None,
        typer.Option(
            metavar="TEXT REFERENCE", help="Your own, a sentence a line each, in place of a corpus."
        ),
    ] = None,
    source: From = None,
    target: To = None,
    beam_size: Beam = 5,
    length_penalty: Penalty = 1.0,
    gnmt: GNMTPenalty = None,
    truncate: Truncate = False,
    images: Annotated[Path | None, typer.Option(help="Folder with features SPLIT.npy.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="JSON file for the scores.")] = None,
):
    """Translate a corpus's splits, or your own files, and score them with sacreBLEU."""
    from kzoo.data.corpora import open_corpus, open_files
    from kzoo.presets.shelf import direction, load, locate

    if files and split:
        raise UserError("--files and --split exclude each other: give one of them")
    data = open_files(test=files) if files else open_corpus(corpus)
    locate(preset)
    if output:
        check_writable(output)
    for name in split or []:
        data.languages_in(name)
    start_backend()
    translator = direction(load(preset), source, target)
    if files:
        corpus = "files"
        data = open_files(test=files, languages=(translator.source_language, translator.target_language))
    if images:
        data = data.with_images(images)
    source, target = translator.source_language, translator.target_language
    splits = split or [
        name
        for name in data.splits
        if name.startswith("test") and {source, target} <= set(data.languages_in(name))
    ]
    if not splits:
        raise UserError(
            f"corpus {corpus} has no test split in {source} and {target}; it has {', '.join(data.languages)}"
        )
    from kzoo.evaluation.scores import evaluate as evaluate_splits
    from kzoo.evaluation.scores import score_table, write_scores

    total = sum(len(data.sentences(name, source)) for name in splits)
    with progress_bar("translating", total) as advance:
        scores, _ = evaluate_splits(
            translator,
            data,
            splits,
            source,
            target,
            beam_size,
            chosen_penalty(length_penalty, gnmt),
            truncate,
            advance,
        )
    print(score_table(scores))
    if output:
        penalty = {"length_penalty": length_penalty} if gnmt is None else {"gnmt": gnmt}
        about = {"preset": Path(preset).name, "corpus": corpus, "licence": data.licence}
        if files:
            about["files"] = [str(path) for path in files]
        write_scores(scores, output, **about, beam_size=beam_size, **penalty, truncate=truncate)


@app.command()
def report(
    path: Annotated[Path, typer.Argument(help="HTML file.")],
    first: Annotated[str, typer.Argument(help="A trained preset, such as one that reads text only.")],
    second: Annotated[str, typer.Argument(help="Another, such as one that reads pictures too.")],
    corpus: Annotated[str, typer.Option(help="A corpus by name.")] = "scenes",
    split: str = "test",
    source: From = None,
    target: To = None,
    number: Annotated[int, typer.Option("-n", min=1, help="Most sentences.")] = 50,
    beam_size: Beam = 5,
    images: Annotated[Path | None, typer.Option(help="Folder with features SPLIT.npy.")] = None,
):
    """Write a page with two presets' translations side by side, where they differ most first."""
    from kzoo.data.corpora import open_corpus
    from kzoo.presets.shelf import direction, load, locate

    data = open_corpus(corpus)
    data.languages_in(split)
    check_writable(path)
    for name in (first, second):
        locate(name)
    start_backend()
    from kzoo.evaluation.report import cases, write_report

    translators = [direction(load(name), source, target) for name in (first, second)]
    ways = {(translator.source_language, translator.target_language) for translator in translators}
    if len(ways) > 1:
        raise UserError(f"{first} and {second} translate between different languages: {sorted(ways)}")
    sources, references = data.pairs(split, *ways.pop())
    pictures = data.images(split) if data.read_images else None  # features are read, not shown
    if images:
        data = data.with_images(images)
    translations = []
    with progress_bar("translating", 2 * len(sources)) as advance:
        for translator in translators:
            shown = {"images": data.images(split)} if getattr(translator, "image_shape", None) else {}
            translations.append(translator.translate(sources, beam_size=beam_size, progress=advance, **shown))
    chosen = cases(sources, references, *translations)[:number]
    names = tuple(Path(name).name for name in (first, second))
    write_report(path, f"{names[0]} and {names[1]} on {corpus}, {split}", names, chosen, pictures)
