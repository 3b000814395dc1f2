"""The models of `kzoo serve`: opened and tried at the start, and newer versions of them later."""

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kzoo.cli.console import start_backend
from kzoo.cli.server_glossaries import Terms, check_terms, glossaries_of
from kzoo.decoding.search_settings import SearchSettings
from kzoo.errors import UserError
from kzoo.hub.preset import Preset
from kzoo.presets.shelf import known_languages, locate
from kzoo.serve.metrics import Metrics
from kzoo.serve.searches import EngineSearch
from kzoo.serve.served import Served
from kzoo.serve.versions import NewVersions


@dataclass(frozen=True)
class NamedPreset:
    """A preset to serve.

    Attributes:
        name: the model's name for clients.
        preset: its newest version, if its folder has several.
        version: the model's version for clients.
        watched: the folder whose newer versions are taken up; `None`: none are.
    """

    name: str
    preset: Preset
    version: int
    watched: Path | None


@dataclass(frozen=True)
class ModelsToServe:
    """Opens and serves presets.

    Attributes:
        presets: those to serve.
        search_of: returns a preset's search settings.
        open_translator: returns a preset's translator, from the preset and its search settings.
        terms: the server's glossaries.
        keep: minutes after which an idle model leaves the memory, as of `Served`.
        bounded: whether models may leave the memory to make room for others.
        options: other arguments of `Served`.
    """

    presets: Sequence[NamedPreset]
    search_of: Callable[[Preset], SearchSettings]
    open_translator: Callable[[Preset, SearchSettings], Any]
    terms: Sequence[Terms]
    keep: float | None
    bounded: bool
    options: Mapping[str, Any]

    def served(self) -> list[Served]:
        """Return the models, which have not started. Of several, those on CTranslate2 are not in memory.

        Raises:
            UserError: a model cannot be loaded or translate; no model has the direction of a glossary; models
                are to leave the memory, but Keras cannot unload any.
        """
        known = [known_languages(one.preset) for one in self.presets]
        if None not in known:
            check_terms(self.terms, known)  # before models are loaded
        translators = []
        for one in self.presets:
            print(f"loading {one.name} …", file=sys.stderr, flush=True)
            translators.append(self._translator(one.preset))
        check_terms(self.terms, translators)
        self._check_unloading(translators)
        metrics = Metrics(", ".join(dict.fromkeys(translator.engine for translator in translators)))
        return [
            self._served(translator, one.name, one.version, one.preset, metrics)
            for translator, one in zip(translators, self.presets, strict=True)
        ]

    def new_versions(self, metrics: Metrics) -> NewVersions | None:
        """Return what finds newer versions of the presets; `None` if no folder is watched."""
        watched = {one.name: one.watched for one in self.presets if one.watched}

        def load(name: str, version: int) -> Served:
            preset = locate(watched[name] / str(version))
            preset.check()
            return self._served(self._translator(preset), name, version, preset, metrics)

        return NewVersions(watched, load) if watched else None

    @property
    def _can_leave(self) -> bool:
        """Whether models may leave the memory."""
        return self.keep is not None or self.bounded

    def _translator(self, preset: Preset):
        """Return a preset's translator: tried, if a request may load it, and, of several, not loaded."""
        search = self.search_of(preset)
        translator = self.open_translator(preset, search)
        several = len(self.presets) > 1
        if (self._can_leave or several) and translator.can_unload:
            tried = EngineSearch(translator, search, 1, start_backend)
            for key, rows in tried.usual():
                tried.search(key, rows)
            if several:
                translator.unload_if_idle(0)
        return translator

    def _check_unloading(self, translators: Sequence):
        """Name the models that stay in memory although others leave it; if all do, raise `UserError`."""
        pairs = zip(self.presets, translators, strict=True)
        stay = [one.name for one, translator in pairs if self._can_leave and not translator.can_unload]
        if len(stay) == len(translators):
            raise UserError(f"{', '.join(stay)}: Keras cannot unload a model: leave --keep and --memory out")
        if stay:
            print(f"{', '.join(stay)}: Keras cannot unload a model, so it stays", file=sys.stderr)

    def _served(self, translator, name: str, version: int, preset: Preset, metrics: Metrics) -> Served:
        return Served(
            translator,
            name,
            version,
            preset=preset,
            start_keras=start_backend,
            metrics=metrics,
            keep=self.keep if translator.can_unload else None,
            glossaries=glossaries_of(translator, self.terms),
            **self.options,
        )
