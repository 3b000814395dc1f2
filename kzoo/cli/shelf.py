"""List what the zoo has."""

from typing import Annotated

import typer

app = typer.Typer()


@app.command("list")
def list_command(pattern: Annotated[str, typer.Argument(help='Such as "pope*".')] = "*"):
    """List the zoo's presets: trained ones with their scores, and those with no weights yet."""
    from rich.console import Console

    from kzoo.presets.shelf import shelf_table

    Console().print(shelf_table(pattern))
