"""Translate."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from kzoo.commands.backend import start_backend
from kzoo.commands.options import (
    Beam,
    From,
    GNMTPenalty,
    Penalty,
    Preset,
    To,
    Truncate,
    chosen_penalty,
)
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
    file: Annotated[
        Path | None, typer.Option("--input", "-i", help="A file, one sentence or text per line.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="File to write; standard output by default.")
    ] = None,
    beam_size: Beam = 5,
    length_penalty: Penalty = 1.0,
    gnmt: GNMTPenalty = None,
    n_best: Annotated[
        int,
        typer.Option(
            min=1,
            help="Translations per sentence; if several: sentence number, score and text, tab-separated.",
        ),
    ] = 1,
    truncate: Truncate = False,
    split: Annotated[
        bool, typer.Option("--split-sentences", help="Translate each sentence of a line by itself.")
    ] = False,
    image: Annotated[
        list[Path] | None,
        typer.Option(help="A sentence's picture, for presets that read pictures; once per sentence."),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(metavar="FILE.npy", help="One row per sentence, for presets that read features."),
    ] = None,
):
    """Translate a sentence, a file or standard input."""
    from kzoo.data import open_features
    from kzoo.presets.shelf import direction, load, locate

    locate(preset)
    if text and file is not None:
        raise UserError("sentences and --input exclude each other: give one of them")
    if image and images:
        raise UserError("--image and --images exclude each other: give pictures or features")
    if n_best > beam_size:
        raise UserError(f"{n_best} best translations need --beam {n_best} at least, not {beam_size}")
    penalty = chosen_penalty(length_penalty, gnmt)
    sentences = _sentences(text, file)
    features = open_features(images) if images else None
    if output:
        check_writable(output)
    start_backend()
    translator = direction(load(preset), source, target)
    shown = _images(translator, preset, image, features)
    from kzoo.models.split_texts import UNSPLIT, SplitTexts, several_sentences

    languages = [translator.source_language] * len(sentences)
    count = len(SplitTexts(sentences, languages, split).sentences)
    if not split and several_sentences(sentences, languages):
        print(f"warning: {UNSPLIT}; --split-sentences translates each", file=sys.stderr)
    with progress_bar("translating", count, shown=file is not None) as advance:
        results = translator.n_best(
            sentences,
            n_best,
            beam_size,
            penalty,
            truncate=truncate,
            progress=advance,
            split_sentences=split,
            **shown,
        )
    content = _lines(results, n_best)
    if output is None:
        typer.echo(content.encode("utf-8"), nl=False)  # as it is read, whatever the locale
    else:
        with whole_file(output) as written:
            written.write_text(content, encoding="utf-8")


def _sentences(text: list[str] | None, file: Path | None) -> list[str]:
    """Return the sentences of a file, of the arguments, or else of standard input."""
    from kzoo.data.text_files import decode_lines, read_lines

    if file is not None:
        return read_lines(file).sentences
    if text:
        if len(text) == 1 and os.path.isfile(text[0]):  # for a long sentence too, unlike Path.is_file
            print(f"{text[0]} is translated as a sentence; --input translates the file", file=sys.stderr)
        arguments = "".join(f"{line}\n" for line in text)
        return decode_lines(arguments.encode("utf-8", "surrogateescape"), "the arguments")
    return decode_lines(sys.stdin.buffer.read(), "standard input")


def _images(translator, preset: str, pictures: list[Path] | None, features) -> dict:
    """Return the sentences' pictures or features, as the preset reads them, as arguments of `n_best`."""
    shape = getattr(translator, "image_shape", None)
    if shape is None:
        if pictures or features is not None:
            raise UserError(
                f"preset {preset} reads text only: leave {'--image' if pictures else '--images'} out"
            )
        return {}
    if len(shape) == 3:
        if not pictures:
            raise UserError(
                f"preset {preset} reads a picture with every sentence: give --image PICTURE for each one"
            )
        return {"images": pictures}
    if features is None:
        raise UserError(
            f"preset {preset} reads features {shape} of pictures with the sentences: give --images FILE.npy "
            "with one row per sentence, as written by kzoo features extract"
        )
    return {"images": features}


def _lines(results: list, n_best: int) -> str:
    """Return the translations, one per line; several per sentence with its number and their scores."""
    if n_best == 1:
        return "".join(f"{hypotheses[0].text}\n" for hypotheses in results)
    return "".join(
        f"{number}\t{hypothesis.score:.4f}\t{hypothesis.text}\n"
        for number, hypotheses in enumerate(results, 1)
        for hypothesis in hypotheses
    )
