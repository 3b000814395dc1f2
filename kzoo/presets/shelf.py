"""Trained presets by name, folder or handle: lists, locates and loads them."""

import fnmatch
import importlib
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from kzoo.errors import UserError
from kzoo.files import cached_folder
from kzoo.hub.location import BUILDERS, located, shelved
from kzoo.hub.preset import NOTES, Preset
from kzoo.text.directions import SeveralLanguages, TwoLanguages

FORMAT = 4  # increase it when reading these models changes: cached presets are then converted again
TRANSLATORS = ("Translator", "MultilingualTranslator")


def list_presets(pattern: str = "*") -> list[str]:
    """Return the names of trained presets and of builders that match a pattern such as `"pope*"`.

    Example:

    >>> list_presets("pope*")
    ['pope_base', 'pope_big', 'pope_small', 'pope_small_multi30k_en_de', 'pope_tiny']
    """
    return sorted(fnmatch.filter([*BUILDERS, *shelved()], pattern))


def locate(preset: str | os.PathLike | Preset) -> Preset:
    """Return a trained preset: its folder, its settings, its search, its scores. No weights are read.

    Imports no deep-learning library, except to convert another model at the first use of its files.

    Args:
        preset: as in `load`.

    Raises:
        UserError: there is no such preset, or only a builder of that name, which has no weights; it cannot be
            downloaded.

    Example:

    >>> locate("pope_small_multi30k_en_de").search.beam_size
    5
    """
    found = located(preset)
    if found.is_converted and not found.conversion:
        return replace(found, conversion=partial(_converted, found))
    return found


def _converted(repository: Preset) -> Path:
    """Return the cached folder of a converted model's preset; convert the model if necessary."""
    folder, name = repository.place, repository.name  # which may end in the two languages
    files = sorted(
        (path.name, path.stat()) for path in folder.iterdir() if path.is_file() and path.name not in NOTES
    )
    stats = [(file, stat.st_size, stat.st_mtime_ns) for file, stat in files]

    def make(made: Path):
        from kzoo.models.backbones import without_values

        print(f"{repository.given}: converting it to a kzoo preset, once", file=sys.stderr)
        if repository.model_type == "marian":
            from kzoo.presets.marian import read_marian as read
        else:
            from kzoo.presets.m2m import read_m2m as read

        without_values(lambda: read(folder, name).save_to_preset(made, dtype="float32"))

    return cached_folder("converted", str([FORMAT, name, folder.resolve(), *stats]), make)


def load(preset: str | os.PathLike | Preset, **overrides) -> Any:
    """Load a trained translator with its tokenizers, compiled.

    It is compiled as in its paper; a Transformer that reads text only, as in Vaswani's.

    Args:
        preset: a name on the shelf; a folder written by `save_to_preset` or `kzoo train`; a handle,
            `"hf://user/repository[@revision]"` or `"kaggle://user/model/keras/variation[/version]"`, which is
            downloaded once and then read from the cache; or what `locate` returns for one of these.
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
    preset = locate(preset)
    kind = preset.settings["class"]
    if kind not in TRANSLATORS:
        raise UserError(
            f"{preset} holds a translator of class {kind!r}, which this kzoo does not know: update kzoo, or, "
            "if the class is your own, load it with its from_preset"
        )
    return getattr(importlib.import_module("kzoo.models"), kind).from_preset(preset, **overrides)


def check_direction(preset: Preset, source: str | None, target: str | None):
    """Raise `UserError` for languages that a preset's small files rule out, as the translator would.

    Those of a preset that `known_languages` does not know are not ruled out.
    """
    known = known_languages(preset)
    if known is not None:
        known.direction(source, target)


class LanguagePair(TwoLanguages):
    """The two languages in a preset's settings, with a translator's attributes."""

    source_tokenizer = target_tokenizer = None

    def __init__(self, source_language: str | None, target_language: str | None):
        self.source_language, self.target_language = source_language, target_language


class LanguageSet(SeveralLanguages):
    """The languages in a multilingual preset's settings, with a translator's attributes."""

    def __init__(self, languages: list[str]):
        self.languages = languages


def known_languages(preset: Preset) -> LanguagePair | LanguageSet | None:
    """Return the languages that a preset's small files name; `None` if its vocabulary may, as OPUS-MT's."""
    if preset.is_converted or "tokenizers" not in preset.settings:
        return None
    naming = ("MarianTokenizer", "LanguageTokenizer")
    if any(preset.object(file).get("class_name") in naming for file in preset.settings["tokenizers"]):
        return None
    if languages := preset.settings.get("languages"):
        return LanguageSet(languages)
    return LanguagePair(*map(preset.settings.get, ("source_language", "target_language")))
