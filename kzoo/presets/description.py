"""Descriptions of trained presets, for commands: read from the small files beside the weights."""

import math
from pathlib import Path

from kzoo.errors import UserError
from kzoo.sharing.integrity import METADATA_FILE, read_object


def describe(folder: Path) -> list[str]:
    """Return lines about a trained preset: its languages, size, score and licence.

    Args:
        folder: the preset; its `scores.json`, written by `kzoo evaluate`, has the score and the licence.

    Raises:
        UserError: one of its files cannot be read.
    """
    scores = _scores(folder)
    return [
        _languages(read_object(folder / "translator.json")),
        _size(folder),
        _score(scores.get("scores", [])),
        f"licence: {scores.get('licence', 'not said')}",
    ]


def scored_corpus(folder: Path) -> str | None:
    """Return the name of the corpus that a trained preset's own scores are of; `None` if there are none."""
    return _scores(folder).get("corpus")


def own_search(folder: Path) -> dict:
    """Return the beam size and the length penalty's α of a trained preset's final scores.

    They are in the recipe of its run or, outside a run, in its own scores. Entries may be missing.

    Raises:
        UserError: a file cannot be read, or one of them is no number that it can be.
    """
    recipe = folder.parent / "recipe.json"
    in_run = folder.name == "preset" and recipe.is_file()
    said, where = (read_object(recipe), recipe) if in_run else (_scores(folder), folder / "scores.json")
    found = {name: said[name] for name in ("beam_size", "length_penalty", "gnmt") if name in said}
    for name, value in found.items():
        kind, least = (int, 1) if name == "beam_size" else ((int, float), -math.inf)
        if isinstance(value, bool) or not isinstance(value, kind) or not value >= least:
            raise UserError(f"{where} has the {name} {value!r}: correct it")
    return found


def _scores(folder: Path) -> dict:
    return read_object(folder / "scores.json") if (folder / "scores.json").is_file() else {}


def _languages(settings: dict) -> str:
    several = settings.get("languages")
    return ", ".join(several) if several else f"{settings['source_language']} → {settings['target_language']}"


def _size(folder: Path) -> str:
    parameters = read_object(folder / METADATA_FILE)["parameter_count"]
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return f"{parameters / 1e6:.1f} M parameters, {stored / 1e6:.1f} MB"


def _score(rows: list[dict]) -> str:
    if not rows:
        return "not scored"
    if "source" in rows[0]:  # by direction
        return f"BLEU {sum(row['bleu'] for row in rows) / len(rows):.1f}, mean of {len(rows)} directions"
    return f"BLEU {rows[0]['bleu']:.1f} on {rows[0]['split']}"
