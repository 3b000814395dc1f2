"""Lists, describes, builds and loads presets by name."""

import fnmatch
import importlib
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kzoo.errors import UserError, nearest
from kzoo.files import cached_folder, read_object, write_json
from kzoo.hub import location
from kzoo.hub.integrity import CONFIG_FILE, METADATA_FILE, NOTES, SCORES_FILE, TRANSLATOR_FILE, SealedFolder
from kzoo.hub.location import INSTALLABLE, SHELF, is_marian, shelved
from kzoo.presets.builders import BUILDERS, PARAMETERS, phrase

if TYPE_CHECKING:  # listing presets needs no deep-learning library
    from rich.console import Group

    from kzoo.models import MultilingualTranslator, Translator

FORMAT = 4  # increase it when reading Marian's models changes: cached presets are then converted again
# The module that compiles a trained translator, by its backbone's class; see `family`.
FAMILIES = {
    "AttentionBridgeBackbone": "attention_bridge",
    "RecurrentBackbone": "glyph",
    "TransformerBackbone": "pope",
}
TRANSLATORS = ("Translator", "MultilingualTranslator")


def list_presets(pattern: str = "*") -> list[str]:
    """Return the names of trained presets and of builders that match a pattern such as `"pope*"`.

    Example:

    >>> list_presets("pope*")
    ['pope_base', 'pope_big', 'pope_small', 'pope_small_multi30k_en_de', 'pope_tiny']
    """
    return sorted(fnmatch.filter([*BUILDERS, *shelved()], pattern))


def shelf_table(pattern: str = "*") -> "Group":
    """Return the matching presets as `rich` tables, one of trained presets and one of builders.

    If the shelf is not installed, list the trained presets that can be installed.
    """
    from rich.console import Group
    from rich.table import Column, Table

    names = list_presets(pattern)
    missing = [] if shelved() else fnmatch.filter(INSTALLABLE, pattern)
    if not names and not missing:
        raise UserError(f"no preset matches {pattern!r}; {nearest(pattern, list_presets())}")
    # Names are never cut, even in a narrow terminal, because users copy them.
    trained = Table(Column("trained preset", no_wrap=True), "family", "what it is", show_lines=True)
    for name in shelved():
        if name in names:
            backbone = read_object(SHELF / name / CONFIG_FILE)
            kind = family(backbone["class_name"], backbone["config"])
            trained.add_row(name, kind, "\n".join(describe(SHELF / name)))
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
    return Group(*(table for table in (trained, to_install, to_train) if table.row_count))


def build(name: str, *tokenizers, **overrides) -> "Translator | MultilingualTranslator":
    """Return an untrained, compiled translator: the builder `name` called with the other arguments.

    Raises:
        UserError: there is no such builder, or it does not accept an argument.
    """
    build_preset = builder(name)
    try:
        return build_preset(*tokenizers, **overrides)
    except UserError as error:  # the message is clear without the arguments
        raise UserError(f"preset {name}: {error}") from None
    except (TypeError, ValueError) as error:
        raise UserError(f"preset {name} with {overrides}: {error}") from error


def builder(name: str) -> "Callable[..., Translator | MultilingualTranslator]":
    """Return the function that builds the preset `name`.

    Raises:
        UserError: there is no such builder.
    """
    if name not in BUILDERS:
        raise UserError(f"no preset {name!r} can be built; {nearest(name, list(BUILDERS))}")
    return getattr(importlib.import_module(f"kzoo.presets.{BUILDERS[name]}"), name)


def locate(preset: str | os.PathLike) -> Path:
    """Return the folder of a trained preset, as `kzoo.hub.locate` does.

    Raises:
        UserError: there is no such preset, or only a builder of that name, which has no weights.
    """
    try:
        folder = location.locate(preset)
        return _converted(folder, os.fspath(preset)) if is_marian(folder) else folder
    except UserError:
        if (name := os.fspath(preset)) in BUILDERS:
            raise UserError(
                f"{name} has no weights yet: train it, or build it untrained with kzoo.presets.{name}()"
            ) from None
        raise


def _converted(folder: Path, name: str) -> Path:
    """Return the cached preset of a repository with a Marian model; convert the model if necessary."""
    files = sorted(
        (path.name, path.stat()) for path in folder.iterdir() if path.is_file() and path.name not in NOTES
    )
    named = preset_name(name, folder)  # it may end in the two languages
    stats = [(file, stat.st_size, stat.st_mtime_ns) for file, stat in files]

    def make(preset: Path):
        print(f"{name}: converting it to a kzoo preset, once", file=sys.stderr)
        from kzoo.models.marian import read_marian

        read_marian(folder, named).save_to_preset(preset, dtype="float32")

    return cached_folder("converted", str([FORMAT, named, folder.resolve(), *stats]), make)


def load(preset: str | os.PathLike, **overrides) -> Any:
    """Load a trained translator with its tokenizers, compiled.

    It is compiled as the builders of its paper compile theirs; a Transformer that reads text only, as PoPE's.

    Args:
        preset: a name on the shelf; a folder written by `save_to_preset` or `kzoo train`; or a handle,
            `"hf://user/repository[@revision]"` or `"kaggle://user/model/keras/variation[/version]"`, which is
            downloaded once and then read from the cache.
        **overrides: arguments of its backbone that replace the saved ones: `dropout`, `dtype`,
            `penalty_weight`, or `max_length` (not with learned positions, whose table has this size).

    Returns:
        A `Translator`; for a multilingual preset, a `MultilingualTranslator`.

    Raises:
        UserError: there is no such preset; it cannot be downloaded; a file is missing or altered; an override
            is not allowed.

    Example:

    >>> load("pope_small_multi30k_en_de").translate(["A dog runs."])
    ['Ein Hund rennt.']
    >>> load("pope_small_multi30k_en_de", dropout=0.1).backbone.get_config()["dropout"]  # to train it further
    0.1
    """
    from kzoo.models.preset_files import read_settings

    folder = locate(preset)
    kind = read_settings(SealedFolder(folder))["class"]
    if kind not in TRANSLATORS:
        raise UserError(
            f"{folder} holds a translator of class {kind!r}, which this kzoo does not know: update kzoo, or, "
            "if the class is your own, load it with its from_preset"
        )
    translator = getattr(importlib.import_module("kzoo.models"), kind).from_preset(folder, **overrides)
    backbone = translator.backbone
    module = family(type(backbone).__name__, backbone.get_config())
    importlib.import_module(f"kzoo.presets.{module}").compile_translator(translator)
    return translator


def family(backbone: str, config: dict) -> str:
    """Return the module of `kzoo.presets` with the builders of a backbone, by its class and configuration."""
    return "image_text" if config.get("image_shape") else FAMILIES[backbone]


def preset_name(preset: str, folder: Path) -> str:
    """Return the default name of a preset that `locate` found in `folder`.

    It is the last part of a handle, the name of the preset's run, or the name of its folder; of a converted
    model, the name of the original folder.
    """
    if "://" in preset:
        parts = preset.partition("@")[0].rstrip("/").split("/")
        return parts[-2] if preset.startswith("kaggle:") and parts[-1].isdecimal() else parts[-1]
    folder = (Path(preset) if Path(preset).is_dir() else folder).resolve()
    return folder.parent.name if folder.name == "preset" else folder.name


def describe(folder: Path) -> list[str]:
    """Return lines about a trained preset: its languages, size, score and licence.

    Args:
        folder: the preset. The score and the licence are in its `scores.json`, written by `kzoo evaluate`.

    Raises:
        UserError: one of its files cannot be read.
    """
    settings, scores = read_object(folder / TRANSLATOR_FILE), read_scores(folder)
    source, target = settings.get("source_language"), settings.get("target_language")
    parameters = read_object(folder / METADATA_FILE).get("parameter_count") or 0
    stored = sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    return [
        ", ".join(settings.get("languages") or [f"{source} → {target}"]),
        f"{parameters / 1e6:.1f} M parameters, " * bool(parameters) + f"{stored / 1e6:.1f} MB",
        _score(scores["scores"]),
        f"licence: {scores.get('licence', 'not given')}",
    ]


def read_scores(folder: Path) -> dict:
    """Return the content of a trained preset's `scores.json`; without one, only "scores", an empty list.

    The file may be edited by hand: rows without BLEU, or without what was scored, are left out, as are a
    corpus and a licence that are not text.
    """
    content = read_object(folder / SCORES_FILE) if (folder / SCORES_FILE).is_file() else {}
    texts = ("corpus", "licence")
    content = {name: value for name, value in content.items() if name not in texts or isinstance(value, str)}
    rows = content.get("scores")
    rows = [row for row in rows if isinstance(row, dict)] if isinstance(rows, list) else []
    scored = (row for row in rows if row.keys() & {"split", "source"})
    return {**content, "scores": [row for row in scored if isinstance(row.get("bleu"), int | float)]}


def direction_key(source: str | None, target: str | None) -> str:
    """Return the key of a direction in a preset's metadata, such as `"en-de"`."""
    return f"{source}-{target}"


def write_low_scores(folder: Path, scores: dict[str, float]):
    """Write the score below which a translation is unusual to a preset's metadata, by `direction_key`.

    This score is the 5th percentile of the validation set's scores.
    """
    metadata = read_object(folder / METADATA_FILE)
    write_json(folder / METADATA_FILE, {**metadata, "low_scores": scores})


def _score(rows: list[dict]) -> str:
    if not rows:
        return "not scored"
    if "source" in rows[0]:  # by direction
        return f"BLEU {sum(row['bleu'] for row in rows) / len(rows):.1f}, mean of {len(rows)} directions"
    return f"BLEU {rows[0]['bleu']:.1f} on {rows[0]['split']}"
