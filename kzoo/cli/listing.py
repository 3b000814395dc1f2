"""`kzoo list`."""

import fnmatch
from typing import TYPE_CHECKING, Annotated

import typer

from kzoo.errors import UserError, nearest

if TYPE_CHECKING:
    from kzoo.hub import Preset

app = typer.Typer()


@app.command("list")
def list_command(pattern: Annotated[str, typer.Argument(help='Names to show, such as "pope*".')] = "*"):
    """List the zoo's presets: trained ones with their scores, and untrained ones.

    If the shelf is not installed, list the trained presets that can be installed.
    """
    from rich.console import Console
    from rich.table import Column, Table

    from kzoo.hub.location import INSTALLABLE, SHELF, shelved
    from kzoo.presets.builders import BUILDERS, PARAMETERS, family, phrase
    from kzoo.presets.shelf import list_presets, locate

    names = list_presets(pattern)
    missing = [] if shelved() else fnmatch.filter(INSTALLABLE, pattern)
    if not names and not missing:
        raise UserError(f"no preset matches {pattern!r}; {nearest(pattern, list_presets())}")
    # Names are never cut, even in a narrow terminal, because users copy them.
    trained = Table(Column("trained preset", no_wrap=True), "family", "what it is", show_lines=True)
    for name in shelved():
        if name in names:
            preset = locate(SHELF / name)
            kind = family(preset.backbone["class_name"], preset.backbone["config"])
            trained.add_row(name, kind, "\n".join(described(preset)))
    to_install = Table(
        Column("trained preset, not installed", no_wrap=True), "how to install it", show_lines=True
    )
    if missing:
        to_install.add_row("\n".join(missing), "pip install ./presets\n(in a clone of kzoo)")
    to_train = Table(
        Column("builder, to be trained", no_wrap=True),
        Column("parameters", justify="right"),
        "what it builds",
    )
    for module in dict.fromkeys(BUILDERS.values()):
        for name in names:
            if BUILDERS.get(name) == module:
                to_train.add_row(name, f"{PARAMETERS[name] / 1e6:.1f} M", phrase(name))
        to_train.add_section()
    console = Console()
    for table in (trained, to_install, to_train):
        if table.row_count:
            console.print(table)


def described(preset: "Preset") -> list[str]:
    """Return lines about a trained preset: its languages, size, score and licence.

    Raises:
        UserError: one of its files cannot be read.
    """
    source, target = map(preset.settings.get, ("source_language", "target_language"))
    return [
        ", ".join(preset.settings.get("languages") or [f"{source} → {target}"]),
        preset.size,
        _score(preset.scores["scores"]),
        f"licence: {preset.scores.get('licence', 'not given')}",
    ]


def _score(rows: list[dict]) -> str:
    if not rows:
        return "not scored"
    if "source" in rows[0]:  # by direction
        return f"BLEU {sum(row['bleu'] for row in rows) / len(rows):.1f}, mean of {len(rows)} directions"
    return f"BLEU {rows[0]['bleu']:.1f} on {rows[0]['split']}"
