"""uvicorn, with a maximum number of connections and a graceful stop."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Collection, Sequence
from functools import partial
from urllib.parse import quote

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kzoo.serve.app import create_app, is_loopback
from kzoo.serve.bodies import SLOWEST, refuse
from kzoo.serve.files import Documents
from kzoo.serve.keys import Keys
from kzoo.serve.metrics import Counted, Metrics
from kzoo.serve.served import Served
from kzoo.serve.startup import end_on_sigterm, most_files
from kzoo.serve.versions import NewVersions, VersionedApp
from kzoo.text.languages import SHOWN

# Seconds after SIGTERM: first, waiting sentences are refused, so that their clients can ask another server;
# later, running batches are cancelled. By default, Kubernetes kills the process after 30.
GIVE_UP_SECONDS = 15
END_SECONDS = 25
# Longer than most proxies keep idle connections (60 s): otherwise, they would use connections closed here.
IDLE_SECONDS = 75
HEAD_SECONDS = 10  # for a client to send the head of a request
MOST_UNREAD = 256 * 2**20  # bytes, of all answers
# The ASGI application for connections beyond the maximum.
TOO_MANY_CLIENTS = partial(refuse, "the server has too many other clients: try again later", 503)

log = logging.getLogger("kzoo.serve")
LOG_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def serve(
    served: Served | Sequence[Served],
    listening: socket.socket,
    allow_hosts: Sequence[str] = (),
    allow_origins: Sequence[str] = (),
    keys: Keys | None = None,
    new_versions: NewVersions | None = None,
):
    """Serve until SIGTERM or Ctrl-C; then finish the requests in progress.

    Args:
        served: as in `create_app`. New versions replace the presets in a list.
        listening: the socket from `reserved`.
        allow_hosts: allowed host names, besides the machine's own. If empty, a server on a loopback address
            allows only the machine's own names, and one on another address allows any name.
        allow_origins: as `origins` in `create_app`.
        keys: as in `create_app`.
        new_versions: finds new versions of the presets, which then replace them; `None`: there are none.
    """
    limited = allow_hosts or is_loopback(listening.getsockname()[0])
    end_on_sigterm()  # after a clean end, uvicorn raises the signal again
    logging.basicConfig(format=LOG_FORMAT)
    log.setLevel(logging.INFO)
    with contextlib.suppress(KeyboardInterrupt):
        hosts = allow_hosts if limited else None
        GracefulServer(served, hosts, allow_origins, keys, new_versions).run(sockets=[listening])


def startup_lines(models: Sequence[Served], address: str, keys: Keys | None) -> list[str]:
    """Return a line for each model: its name, its page, its directions, its engine and its search.

    Args:
        models: those served.
        address: of the server, with a slash at the end.
        keys: as in `create_app`. With keys, there are no pages.
    """
    own = "v1/models/{}" if keys else "pages/{}/"
    lines = []
    for model in models:
        path, pairs = own.format(quote(model.name)) if len(models) > 1 else "", model.translator.directions
        codes = sorted({code for pair in pairs for code in pair})
        named = ", ".join(codes) if len(codes) <= SHOWN else f"{len(codes)} languages"
        directions = (
            f"{len(pairs):,} directions of {named}" if len(pairs) > 1 else " to ".join(*pairs or [""])
        )
        parts = [f"{model.name}: {address}{path}", directions, model.engine, str(model.settings)]
        lines.append(", ".join([*filter(None, parts), "Ctrl-C stops it"]))
    return lines


class GracefulServer(uvicorn.Server):
    """A server that stops gracefully: it finishes the requests that it can in time; the others get 503.

    Args:
        served, hosts, origins, keys: as in `create_app`.
        new_versions: as in `serve`.
    """

    def __init__(
        self,
        served: Served | Sequence[Served],
        hosts: Collection[str] | None = None,
        origins: Collection[str] = (),
        keys: Keys | None = None,
        new_versions: NewVersions | None = None,
    ):
        self.models = [served] if isinstance(served, Served) else served
        files = most_files()
        application = partial(create_app, hosts=hosts, origins=origins, keys=keys, documents=Documents())
        versioned = new_versions and VersionedApp(self.models, application, new_versions)
        config = uvicorn.Config(
            versioned or application(self.models),
            log_config=None,
            log_level="warning",
            access_log=False,
            ws="none",  # its connections lack the `cycle` that `shutdown` reads
            timeout_graceful_shutdown=END_SECONDS,
            timeout_keep_alive=IDLE_SECONDS,
            # asyncio accepts a whole backlog at once. A quarter of the files is left for other uses.
            http=limited_protocol(files // 2, self.models[0].metrics),
            backlog=min(files // 4, 2048),
        )
        super().__init__(config)

    async def shutdown(self, sockets=None):
        """Refuse new connections, and wait for the requests in progress."""
        log.info("stopping: no new connections")
        for model in self.models:
            asyncio.get_running_loop().call_later(GIVE_UP_SECONDS, model.give_up)
        for connection in self.server_state.connections:
            if connection.cycle is not None:  # without this header, a client may send another request
                headers = connection.cycle.default_headers
                connection.cycle.default_headers = [*headers, (b"connection", b"close")]
        await super().shutdown(sockets)
        log.info("stopped")


def limited_protocol(most: int, metrics: Metrics) -> type[AutoHTTPProtocol]:
    """Return uvicorn's protocol for a server with at most `most` connections at a time.

    Requests on additional connections get 503. Beyond 1.25 × `most`, connections are closed at once. A
    connection is closed if a request's head is not complete `HEAD_SECONDS` after the connection opened or
    after the head began, unless it began before the last answer was complete. A client that reads an answer
    more slowly than `SLOWEST` is disconnected; so is the one with the largest unread answer while all unread
    answers together exceed `MOST_UNREAD`.
    """

    class LimitedProtocol(AutoHTTPProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            self.loop.call_later(HEAD_SECONDS, self.close_silent)
            if len(self.connections) > most + most // 4:  # each needs a file
                transport.close()
            elif len(self.connections) > most:
                self.app = Counted(TOO_MANY_CLIENTS, metrics)
                if len(self.connections) == most + 1:  # log once for many
                    log.warning("%d clients are connected: new ones get 503", most)

        def data_received(self, data):
            before = self.cycle
            super().data_received(data)
            if before is not None and before.response_complete and self.cycle is before:
                self.loop.call_later(HEAD_SECONDS, self.close_silent, before)

        def pause_writing(self):  # the client does not read as fast as this writes
            super().pause_writing()
            self.stuck = self.abort_unread()
            unread = {each: each.transport.get_write_buffer_size() for each in self.connections}
            if sum(unread.values()) > MOST_UNREAD:
                max(unread, key=unread.get).transport.abort()

        def resume_writing(self):
            super().resume_writing()
            self.stuck.cancel()

        def timeout_keep_alive_handler(self):
            super().timeout_keep_alive_handler()
            self.abort_unread()

        def on_response_complete(self):
            super().on_response_complete()
            if self.transport.is_closing():
                self.abort_unread()

        def close_silent(self, before=None):
            if self.cycle is before:  # no other request has begun
                self.transport.close()
                self.abort_unread()

        def abort_unread(self):  # closing waits until all is read
            seconds = HEAD_SECONDS + self.transport.get_write_buffer_size() / SLOWEST
            return self.loop.call_later(seconds, self.transport.abort)

    return LimitedProtocol
