"""`kzoo trim`."""

from pathlib import Path
from typing import Annotated

import typer

from kzoo.cli import options
from kzoo.cli.console import start_backend

app = typer.Typer()


@app.command()
def trim(
    preset: options.Preset,
    languages: Annotated[
        str, typer.Option(metavar="CODE,CODE…", help="The languages to keep, such as en,fr.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder of the new preset.")],
    text: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FILE",
            help="Your own text in these languages, to keep only the pieces that it needs, and single "
            "characters. Give it once per file.",
        ),
    ] = None,
):
    """Cut the vocabulary of M2M-100, NLLB-200 or SMaLL-100 to some languages."""
    from kzoo.data.text_files import read_lines
    from kzoo.errors import UserError
    from kzoo.files import check_replaceable
    from kzoo.hub.preset import METADATA_FILE
    from kzoo.presets.shelf import locate

    check_replaceable(output, METADATA_FILE, "*")
    texts = [line for path in text for line in read_lines(path).sentences] if text else None
    located = locate(preset)
    if output.resolve() == located.place.resolve():
        raise UserError(f"{output} is the preset itself: give another --output")
    start_backend()
    from kzoo.presets import trim as trim_preset

    translator = trim_preset(located, [code.strip() for code in languages.split(",")], texts)
    translator.save_to_preset(output, dtype="float32")
    before, after = (one.backbone["config"]["source_vocabulary_size"] for one in (located, locate(output)))
    print(f"{output}: {after:,} of {before:,} pieces; {locate(output).size}")
