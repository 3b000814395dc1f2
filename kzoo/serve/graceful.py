"""uvicorn, with an end that answers every request it can; `kzoo.serve.server` runs it."""

import asyncio
import logging
from collections.abc import Collection

import uvicorn

from kzoo.serve.app import create_app
from kzoo.serve.connections import limited_protocol, most_files
from kzoo.serve.served import Served

# In seconds from SIGTERM. What still waits after the first is refused, so that its clients can ask another
# server; running batches then have ten more. Kubernetes kills the process after 30 by default.
GIVE_UP_SECONDS = 15
END_SECONDS = 25
# A proxy that keeps idle connections for longer than the server fails when it uses one that is just closed;
# many keep them for 60.
IDLE_SECONDS = 75

log = logging.getLogger("kzoo.serve")


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
