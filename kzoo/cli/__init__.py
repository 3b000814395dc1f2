"""The `kzoo` command line."""

import io
import os
import sys
import warnings
from typing import Annotated

import typer

from kzoo import __version__
from kzoo.cli import exporting, listing, pictures, plots, scoring, serving, training, translation, trimming
from kzoo.errors import exits_on_errors

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A Keras 3 model zoo for machine translation.",
)


for commands in (listing, training, translation, scoring, serving, exporting, trimming):
    app.add_typer(commands.app)
app.add_typer(pictures.app, name="features")
app.add_typer(plots.app, name="plot")


def _print_version(requested: bool):
    if requested:
        print(f"kzoo {__version__}")
        raise typer.Exit


@app.callback()
def _kzoo(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit."),
    ] = False,
):
    pass


def main(application: typer.Typer | None = None):
    """Run the command line; print a user's error as one line, and exit with status 1.

    Args:
        application: a script's own application, instead of `kzoo`'s.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may not be UTF-8
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    with exits_on_errors():
        (application or app)()
