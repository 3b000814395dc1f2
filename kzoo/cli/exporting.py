"""`kzoo export`."""

import os
import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from kzoo.cli import options
from kzoo.cli.console import chosen_search, open_translator
from kzoo.errors import UserError
from kzoo.export_formats import FORMATS, PRECISIONS
from kzoo.export_formats import export as export_as

app = typer.Typer()
KINDS = ", ".join(f"{name} ({kind})" for name, kind in FORMATS.items())


@app.command()
def export(
    preset: options.Preset,
    folder: Annotated[Path, typer.Argument(help="Folder to write; for argos, a file NAME.argosmodel.")],
    to: Annotated[
        Literal[tuple(FORMATS)] | None,
        typer.Option(
            "--format",
            help=f"What to write: {KINDS}; by default argos for a NAME.argosmodel, else saved_model.",
        ),
    ] = None,
    beam_size: options.Beam = None,
    length_penalty: options.Penalty = None,
    gnmt: options.GNMTPenalty = None,
    max_length: options.MaxLength = None,
    precision: Annotated[Literal[PRECISIONS], typer.Option(help="Precision of the weights.")] = "float32",
):
    """Export a preset for other programs."""
    from kzoo.export.saved_model import check_saved_model
    from kzoo.presets.shelf import locate

    is_argos = folder.suffix.lower() == ".argosmodel"
    to = to or ("argos" if is_argos else "saved_model")
    if is_argos and to != "argos":
        raise UserError(f"{folder} is a name for --format argos: {to} writes a folder")
    translator = locate(preset)
    given = {"beam_size": beam_size, "length_penalty": length_penalty, "gnmt": gnmt, "max_length": max_length}
    if to == "saved_model":  # the only one that a model on Keras writes
        search = chosen_search(translator, **given)
        check_saved_model(folder, precision, os.environ.get("KERAS_BACKEND", "tensorflow"))
        translator = open_translator(translator, search)
        print("writing the graph of the beam search: this takes a minute or two", file=sys.stderr)
    export_as(translator, folder, to, precision, **given)
    print(f"{folder}: written, {to}, {precision}")
