"""Arguments and options that several commands take."""

from pathlib import Path
from typing import Annotated, Literal

import typer
from typer.core import TyperCommand

from kzoo.decoding.search_settings import LARGEST_BEAM, LONGEST
from kzoo.engine import Device, Engine

Preset = Annotated[
    str, typer.Argument(help="A trained preset: a name on the shelf, a folder, hf://… or kaggle://….")
]
Presets = Annotated[
    list[str],
    typer.Argument(
        metavar="PRESET...", help="Trained presets: names on the shelf, folders, hf://… or kaggle://…."
    ),
]
# Settings of the search, by default the preset's.
Beam = Annotated[
    int | None,
    typer.Option(
        "--beam",
        min=1,
        max=LARGEST_BEAM,
        help="Candidate translations kept at each step; by default the preset's, or 5.",
    ),
]
Penalty = Annotated[
    float | None, typer.Option(help="α in the score log P / length^α; by default the preset's, or 1.")
]
GNMTPenalty = Annotated[
    float | None, typer.Option("--gnmt", help="α of GNMT's length penalty, instead of --length-penalty.")
]
MaxLength = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=LONGEST,
        help="Maximum tokens of a translation, end symbol included; by default the preset's, or 1.5 × the "
        "padded source's + 8.",
    ),
]
From = Annotated[str | None, typer.Option("--from", help="Source language; for multilingual presets.")]
To = Annotated[str | None, typer.Option("--to", help="Target language; for multilingual presets.")]
EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine", help="Engine to translate with; auto: CTranslate2 if it supports the preset, else Keras."
    ),
]
ComputeType = Annotated[
    Literal["float32", "int8", "bfloat16", "int8_bfloat16", "float16", "int8_float16", "int16"],
    typer.Option(help="Number format in which CTranslate2 computes."),
]
DeviceOption = Annotated[
    Device,
    typer.Option(
        "--device",
        help="Where CTranslate2 computes; auto: on the first NVIDIA GPU if there is one, else the CPU.",
    ),
]
Truncate = Annotated[bool, typer.Option(help="Cut sentences that are too long for the model.")]
Files = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="TEXT REFERENCE …",
        help="Your own text and one or more reference translations, instead of a corpus: text files with a "
        "sentence per line, or tables, such as .tsv files.",
    ),
]
Overrides = Annotated[
    list[str] | None, typer.Argument(help="Changes to the recipe, each KEY=VALUE, such as epochs=3.")
]


class WithFiles(TyperCommand):
    """A command whose option --files takes all arguments up to the next option."""

    def parse_args(self, ctx, args: list[str]) -> list[str]:
        words, within = [], False
        for word in args:
            if word.startswith("-"):
                within = word == "--files"
            if word != "--files":
                words += ["--files", word] if within else [word]
        if "--files" in args and "--files" not in words:
            words.append("--files")  # the parser says that it needs an argument
        return super().parse_args(ctx, words)
