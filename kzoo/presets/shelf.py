"""The shelf: the zoo's presets by name, fresh or trained."""

import fnmatch
import importlib
import json
from pathlib import Path

from kzoo.errors import UserError, nearest

SHELF = Path(__file__).resolve().parents[2] / "presets"
# Builders by the module that they stand in.
BUILDERS = {
    "attention_bridge": (
        "attention_bridge_bilingual",
        "attention_bridge_bilingual_tiny",
        "attention_bridge_m2m",
        "attention_bridge_m2m_tiny",
    ),
    "glyph": (
        "glyph_zh_en",
        "glyph_zh_en_tiny",
        "lookup_zh_en",
        "lookup_zh_en_tiny",
    ),
    "image_text": (
        "image_text_base",
        "image_text_tiny",
        "text_only_base",
        "text_only_tiny",
    ),
    "pope": (
        "learned_base",
        "learned_tiny",
        "pope_base",
        "pope_tiny",
        "rope_base",
        "rope_tiny",
        "sine_base",
        "sine_tiny",
    ),
}
# The module whose recipe a trained translator is compiled with, by its backbone's class.
FAMILIES = {
    "AttentionBridgeBackbone": "attention_bridge",
    "RecurrentBackbone": "glyph",
    "TransformerBackbone": "pope",
}
TRANSLATORS = ("Translator", "MultilingualTranslator")


def list_presets(pattern: str = "*") -> list[str]:
    """Return the names of trained presets and of builders that match, as `"pope*"`.

    Example:

    >>> list_presets("pope*")
    ['pope_base', 'pope_tiny', 'pope_tiny_multi30k_en_de']
    """
    names = [name for module in BUILDERS.values() for name in module]
    if SHELF.is_dir():
        names += [folder.name for folder in SHELF.iterdir() if (folder / "config.json").is_file()]
    return sorted(fnmatch.filter(names, pattern))


def shelf_table(pattern: str = "*"):
    """Return a `rich` table of the presets that match: what each is, and the scores of the trained ones."""
    from rich.table import Table

    names = list_presets(pattern)
    if not names:
        raise UserError(f"no preset matches {pattern!r}; {nearest(pattern, list_presets())}")
    table = Table()
    table.add_column("preset", no_wrap=True, min_width=max(map(len, names)))
    for column in ("languages", "parameters", "BLEU", "what it is"):
        table.add_column(column)
    for name in names:
        folder = SHELF / name
        if folder.is_dir():
            translator = json.loads((folder / "translator.json").read_text())
            metadata = json.loads((folder / "metadata.json").read_text())
            scores = json.loads((folder / "scores.json").read_text())
            first = scores["scores"][0]
            languages = translator.get("languages")
            table.add_row(
                name,
                ", ".join(languages)
                if languages
                else f"{translator['source_language']} → {translator['target_language']}",
                f"{metadata['parameter_count'] / 1e6:.1f} M",
                f"{first['bleu']:.1f} ({first['split']})",
                f"trained on {scores['corpus']}",
            )
        else:
            table.add_row(name, "", "", "", "a builder, to be trained")
    return table


def build(name: str, *tokenizers, **overrides):
    """Return a fresh, compiled translator: the builder `name` called with the other arguments.

    Raises:
        UserError: no builder of that name, or it does not take an argument.
    """
    build_preset = builder(name)
    try:
        return build_preset(*tokenizers, **overrides)
    except (TypeError, ValueError) as error:
        raise UserError(f"preset {name} with {overrides}: {error}") from error


def builder(name: str):
    """Return the function that builds the preset `name`.

    Raises:
        UserError: there is none of that name.
    """
    for module, builders in BUILDERS.items():
        if name in builders:
            return getattr(importlib.import_module(f"kzoo.presets.{module}"), name)
    known = [name for builders in BUILDERS.values() for name in builders]
    raise UserError(f"no preset {name!r} can be built; {nearest(name, known)}")


def load(name_or_folder: str | Path):
    """Return a trained translator with its tokenizers, compiled as the builders of its kind compile.

    Args:
        name_or_folder: a preset on the shelf, or a folder that `save_to_preset` wrote, or
            that `kzoo train` did.

    Raises:
        UserError: there is none of that name.
    """
    from kzoo.models.preset_files import read_settings

    folder = locate(name_or_folder)
    kind = read_settings(folder)["class"]
    if kind not in TRANSLATORS:
        raise UserError(f"{folder} holds a translator of class {kind!r}, which this kzoo does not know")
    translator_class = getattr(importlib.import_module("kzoo.models"), kind)
    translator = translator_class.from_preset(folder)
    family = "image_text" if translator.image_shape else FAMILIES[type(translator.backbone).__name__]
    importlib.import_module(f"kzoo.presets.{family}").compile_translator(translator)
    return translator


def direction(translator, source: str | None = None, target: str | None = None):
    """Return a trained translator as one of a single direction, with `translate` and its two languages.

    Args:
        translator: what `load` returned.
        source: language of the text; a multilingual translator needs it.
        target: language wanted; the same.

    Raises:
        UserError: a multilingual translator without the two, or languages that the translator lacks.
    """
    if hasattr(translator, "between"):
        if source is None or target is None:
            raise UserError(
                f"this preset translates among {', '.join(translator.languages)}: say between which two, "
                "with --from and --to"
            )
        return translator.between(source, target)
    translator.source_language = translator.source_language or source
    translator.target_language = translator.target_language or target
    if translator.source_language is None or translator.target_language is None:
        raise UserError("this preset does not name its languages: say them with --from and --to")
    for given, own in ((source, translator.source_language), (target, translator.target_language)):
        if given not in (None, own):
            raise UserError(
                f"this preset translates from {translator.source_language} to {translator.target_language}, "
                f"not with {given!r}"
            )
    return translator


def locate(name_or_folder: str | Path) -> Path:
    """Return the folder of a trained preset.

    Raises:
        UserError: there is none of that name.
    """
    for folder in (Path(name_or_folder), Path(name_or_folder) / "preset", SHELF / name_or_folder):
        if (folder / "config.json").is_file():
            return folder
    trained = [name for name in list_presets() if (SHELF / name).is_dir()]
    raise UserError(f"no trained preset {str(name_or_folder)!r}; {nearest(str(name_or_folder), trained)}")
