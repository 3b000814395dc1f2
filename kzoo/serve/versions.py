"""New versions of the presets that a server serves: each is taken up without losing a request."""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

from starlette.applications import Starlette

from kzoo.errors import UserError
from kzoo.hub.location import MARKS, newest_version, versions
from kzoo.serve.app import running
from kzoo.serve.served import PREPARING, Served

log = logging.getLogger("kzoo.serve")

POLL_SECONDS = 5.0


class NewVersions:
    """Loads the newest version of each preset, once a version is newer than the one served.

    Args:
        folders: for each model's name, the folder of its versions: a preset in each of `1`, `2`, …
        load: returns a version of a model, which has not started.
    """

    def __init__(self, folders: Mapping[str, Path], load: Callable[[str, int], Served]):
        self._folders, self._load, self._tried, self._named = folders, load, {}, set()

    def __call__(self, models: Sequence[Served]) -> list[Served]:
        """Return newer versions of models."""
        found = []
        for model in models:
            if not (folder := self._folders.get(model.name)):
                continue
            self._name_empty(model, folder)
            number = newest_version(folder)
            if not number or number <= model.version:
                continue
            files = [path for path in sorted((folder / str(number)).rglob("*")) if path.is_file()]
            state = [(path, path.stat().st_size, path.stat().st_mtime) for path in files]
            if self._tried.get(model.name) == state:
                continue
            self._tried[model.name] = state  # it changes while the folder is copied
            try:
                found.append(self._load(model.name, number))
            except UserError as error:
                log.warning("%s, version %d, is not served: %s", model.name, number, error)
            except Exception:
                log.exception("%s, version %d, is not served", model.name, number)
        return found

    def _name_empty(self, model: Served, folder: Path):
        """Log newer versions without a preset, once each. They may be copied just now."""
        for number, is_preset in versions(folder).items():
            if number > model.version and not is_preset and (model.name, number) not in self._named:
                self._named.add((model.name, number))
                log.warning(
                    "%s, version %d, is not served: %s has no %s yet",
                    model.name,
                    number,
                    folder / str(number),
                    " or ".join(MARKS),
                )


class VersionedApp:
    """ASGI application of presets that may be replaced by new versions.

    A request is answered by the versions that were served when it came. A new version is taken up when it is
    ready; the earlier one ends after its last request.

    Args:
        models: the presets, started and stopped with the application. New versions replace them in this list.
        application: makes an application of presets, as `create_app` does.
        new_versions: finds them. Called every few seconds, in a thread.
    """

    def __init__(
        self,
        models: list[Served],
        application: Callable[[list[Served]], Starlette],
        new_versions: NewVersions,
    ):
        self._models, self._application, self._new_versions = models, application, new_versions
        self._current = _Counted(application(list(models)))
        self._lifespan = Starlette(lifespan=self._running)

    async def __call__(self, scope, receive, send):
        await (self._lifespan if scope["type"] == "lifespan" else self._current)(scope, receive, send)

    @asynccontextmanager
    async def _running(self, _):
        async with running(self._models):
            watching = asyncio.create_task(self._watch())
            yield
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)

    async def _watch(self):
        while True:
            await asyncio.sleep(POLL_SECONDS)
            try:
                for model in await asyncio.to_thread(self._new_versions, list(self._models)):
                    await self._take_up(model)
            except Exception:
                log.exception("a new version is not served")

    async def _take_up(self, model: Served):
        await model.start()
        leaving = model
        try:
            while model.readiness == PREPARING:
                await asyncio.sleep(0.1)
            if model.readiness:  # the log says why
                return
            models = list(self._models)
            number = [one.name for one in models].index(model.name)
            models[number] = model
            before, self._current = self._current, _Counted(self._application(models))
            leaving, self._models[number] = self._models[number], model
            log.info("%s: version %d is served", model.name, model.version)
            while before.requests:
                await asyncio.sleep(0.1)
        finally:  # also when the server stops meanwhile
            await leaving.stop()


class _Counted:
    """An ASGI application, and the number of requests that it is answering."""

    def __init__(self, app: Starlette):
        self.app, self.requests = app, 0

    async def __call__(self, scope, receive, send):
        self.requests += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.requests -= 1
