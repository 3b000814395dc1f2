"""uvicorn, with as many connections as there are files, and an end that answers every request it can."""

import asyncio
import contextlib
import logging
import math
import socket
from collections.abc import Collection, Sequence

import uvicorn
from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kzoo.serve.app import create_app, is_loopback
from kzoo.serve.bodies import refuse
from kzoo.serve.served import Served
from kzoo.serve.startup import allow_reuse, end_on_sigterm, most_files

# In seconds from SIGTERM. What still waits after the first is refused, so that its clients can ask another
# server; running batches then have ten more. Kubernetes kills the process after 30 by default.
GIVE_UP_SECONDS = 15
END_SECONDS = 25
# A proxy that keeps idle connections for longer than the server fails when it uses one that is just closed;
# many keep them for 60.
IDLE_SECONDS = 75
HEAD_SECONDS = 10  # in which a connection's first request begins

log = logging.getLogger("kzoo.serve")


def serve(served: Served, listening: socket.socket, allow_hosts: Sequence[str] = ()):
    """Serve until SIGTERM or Ctrl-C; earlier requests are still answered.

    Args:
        served: the preset.
        listening: the socket from `reserved`.
        allow_hosts: names by which clients may call the server. Others are refused if there are any, and on
            a socket that only this machine reaches, where the machine's own names are allowed as well.
    """
    limited = allow_hosts or is_loopback(listening.getsockname()[0])
    allow_reuse(listening)
    end_on_sigterm()  # uvicorn, after a clean end, raises the signal that ended it again
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    for handler in logging.getLogger().handlers:
        handler.addFilter(OnceASecond())
    log.setLevel(logging.INFO)
    with contextlib.suppress(KeyboardInterrupt):
        GracefulServer(served, hosts=allow_hosts if limited else None).run(sockets=[listening])


class GracefulServer(uvicorn.Server):
    """A server that at its end answers what it can in time, and tells the rest to try again.

    uvicorn stops the application only after it has cancelled the requests that took too long: rows that wait
    are refused before that.

    Args:
        served: the preset.
        give_up_seconds: float. How long rows may wait after the server was told to stop.
        end_seconds: float. How long requests may take then before they are cancelled.
        hosts: as in `create_app`.
    """

    def __init__(
        self,
        served: Served,
        give_up_seconds: float = GIVE_UP_SECONDS,
        end_seconds: float = END_SECONDS,
        hosts: Collection[str] | None = None,
    ):
        self.served, self.give_up_seconds = served, give_up_seconds
        files = most_files()
        config = uvicorn.Config(
            self._closing(create_app(served, hosts)),
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=end_seconds,
            timeout_keep_alive=IDLE_SECONDS,
            # asyncio accepts the whole backlog before it counts a connection; the rest is for other files.
            http=limited_protocol(files // 2),
            backlog=min(files // 4, 2048),
        )
        super().__init__(config)

    async def shutdown(self, sockets=None):
        """Refuse new connections, and wait for the requests that have begun."""
        log.info("stopping: no new connections")
        asyncio.get_running_loop().call_later(self.give_up_seconds, self.served.give_up)
        await super().shutdown(sockets)
        log.info("stopped")

    def _closing(self, app):
        """Return the application; when the server stops, its answers say that their connections will close.

        A client that did not know would send its next request on a connection that is closed.
        """

        async def closing(scope, receive, send):
            async def closing_send(message):
                if message["type"] == "http.response.start" and self.should_exit:
                    message = {**message, "headers": [*message["headers"], (b"connection", b"close")]}
                await send(message)

            await app(scope, receive, closing_send)

        return closing


def limited_protocol(most: int) -> type[AutoHTTPProtocol]:
    """Return uvicorn's protocol for a server with at most `most` connections at a time.

    Requests on further ones are answered 503; beyond a quarter more, connections are closed at once. A
    connection without a request is closed after `HEAD_SECONDS`.
    """

    class LimitedProtocol(AutoHTTPProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            self.loop.call_later(HEAD_SECONDS, self.close_silent)
            if len(self.connections) > most + most // 4:  # each holds a file
                transport.close()
            elif len(self.connections) > most:
                log.warning("%d clients are connected: new ones are answered 503", most)
                self.app = too_many_clients

        def close_silent(self):
            if self.cycle is None:
                self.transport.close()

    return LimitedProtocol


async def too_many_clients(scope, receive, send):
    """Answer 503: the application for a connection beyond the server's maximum."""
    await refuse("the server has too many other clients: try again later", 503, scope, receive, send)


class OnceASecond(logging.Filter):
    """Passes one record a second from each place in the code; the next one says how many were left out."""

    def __init__(self):
        super().__init__()
        self._last = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged."""
        place = record.pathname, record.lineno
        passed, left_out = self._last.get(place, (-math.inf, 0))
        if record.created < passed + 1:
            self._last[place] = passed, left_out + 1
            return False
        self._last[place] = record.created, 0
        if left_out:
            record.msg, record.args = f"{record.getMessage()} (and {left_out:,} more before)", ()
        return True
