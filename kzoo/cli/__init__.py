"""The `kzoo` command line: its commands, and errors printed as one line."""

import io
import os
import sys
import warnings
from typing import Annotated

import typer

from kzoo import __version__
from kzoo.cli import comparison, features, plots, scoring, serving, training, translation
from kzoo.errors import exits_on_errors

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="A Keras 3 model zoo for machine translation.",
)


@app.command("list")
def list_command(pattern: Annotated[str, typer.Argument(help='Names to show, such as "pope*".')] = "*"):
    """List the zoo's presets: trained ones with their scores, and those with no weights yet."""
    from rich.console import Console

    from kzoo.presets.shelf import shelf_table

    Console().print(shelf_table(pattern))


for commands in (training, translation, scoring, comparison, serving):
    app.add_typer(commands.app)
app.add_typer(features.app, name="features")
app.add_typer(plots.app, name="plot")


def _version(asked: bool):
    if asked:
        print(f"kzoo {__version__}")
        raise typer.Exit


@app.callback()
def _kzoo(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
):
    pass


def main(application: typer.Typer | None = None):
    """Run the command line; a user's error is printed as one line, with exit status 1.

    Args:
        application: another application than `kzoo`'s, for scripts that use the package.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")  # it may not be UTF-8
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    warnings.formatwarning = lambda message, *_, **__: f"warning: {message}\n"
    with exits_on_errors():
        (application or app)()
