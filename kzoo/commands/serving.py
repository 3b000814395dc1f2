"""Make a trained preset available to other programs: as files, or over the network."""

import sys
from pathlib import Path
from typing import Annotated, Literal

import typer

from kzoo.commands.backend import start_backend
from kzoo.commands.options import Beam, Preset, chosen_penalty
from kzoo.errors import UserError

app = typer.Typer()


@app.command()
def export(
    preset: Preset,
    folder: Annotated[Path, typer.Argument(help="Folder to write.")],
    to: Annotated[Literal["saved_model", "ctranslate2"], typer.Option("--format")] = "saved_model",
    beam_size: Annotated[
        int | None, typer.Option("--beam", min=1, help="Beam size of a SavedModel; 5 by default.")
    ] = None,
    length_penalty: Annotated[
        float | None, typer.Option(help="Length penalty α of a SavedModel; 1.0 by default.")
    ] = None,
    precision: Annotated[
        Literal["float32", "float16", "int8"], typer.Option(help="Precision of the weights.")
    ] = "float32",
):
    """Export a preset for other programs: a TensorFlow SavedModel, text to text, or a CTranslate2 model."""
    from kzoo.presets.shelf import load, locate

    if to == "ctranslate2":
        for option, value in (("--beam", beam_size), ("--length-penalty", length_penalty)):
            if value is not None:
                raise UserError(
                    f"{option} is for a SavedModel; CTranslate2 is given it with each translation"
                )
    penalty = chosen_penalty(1.0 if length_penalty is None else length_penalty)
    locate(preset)
    start_backend()
    from kzoo.export import export_ctranslate2, export_saved_model

    if to == "saved_model":
        print("writing the graph of the beam search, which takes a minute or two", file=sys.stderr)
        export_saved_model(load(preset), folder, beam_size or 5, penalty, precision)
    else:
        export_ctranslate2(load(preset), folder, precision)
    print(f"{folder}: written, {to}, {precision}")


@app.command()
def serve(
    preset: Preset,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0: any free port.")] = 8501,
    name: Annotated[
        str | None, typer.Option(help="The model's name for clients; the preset's name by default.")
    ] = None,
    version: Annotated[int, typer.Option(min=1, help="The model's version for clients.")] = 1,
    beam_size: Beam = 5,
    max_batch: Annotated[
        int, typer.Option(min=1, max=64, help="Maximum sentences per batch; 1: no batching.")
    ] = 16,
    max_wait: Annotated[
        float, typer.Option(min=0, help="Maximum milliseconds that a sentence waits for others.")
    ] = 0.0,
):
    """Serve a preset with TensorFlow Serving's REST interface, and a page to try it."""
    from kzoo.presets.shelf import load, locate, preset_name
    from kzoo.serve.server import end_on_sigterm, reserved

    end_on_sigterm()  # while the model loads, too
    name = name or preset_name(preset, locate(preset))
    with reserved(host, port) as listening:
        start_backend()
        from kzoo.serve import Served
        from kzoo.serve import serve as serve_forever

        served = Served(load(preset), name, version, beam_size, max_batch, max_wait)
        shown = f"[{host}]" if ":" in host else host
        print(f"{name}: http://{shown}:{listening.getsockname()[1]}/, Ctrl-C stops it", flush=True)
        serve_forever(served, listening)
