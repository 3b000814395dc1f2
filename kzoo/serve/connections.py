"""How many clients may be connected at once: fewer than the files that the process may open."""

import contextlib
import json
import logging
import resource

from uvicorn.protocols.http.auto import AutoHTTPProtocol

from kzoo.serve.refusal import RETRY_SECONDS

MOST_FILES = 2**16
HEAD_SECONDS = 10

log = logging.getLogger("kzoo.serve")

BODY = json.dumps({"error": "the server has too many other clients: try again later"}).encode()
FULL = (
    "HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nConnection: close\r\n"
    f"Retry-After: {RETRY_SECONDS}\r\nContent-Length: {len(BODY)}\r\n\r\n"
).encode() + BODY


def most_files() -> int:
    """Return how many files this process may open, after raising the number where that is allowed."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_FILES if hard == resource.RLIM_INFINITY else min(hard, MOST_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
            return wanted
    return MOST_FILES if soft == resource.RLIM_INFINITY else soft


def limited_protocol(most: int) -> type[AutoHTTPProtocol]:
    """Return uvicorn's protocol for connections of which there are at most so many.

    Others are answered 503. One that sends no request in `HEAD_SECONDS` is closed.

    Args:
        most: int. Number of connections.
    """

    class LimitedProtocol(AutoHTTPProtocol):
        def connection_made(self, transport):
            super().connection_made(transport)
            if len(self.connections) > most:
                log.warning("%d clients are connected: no more are let in", most)
                transport.write(FULL)
                transport.close()
            else:
                self.loop.call_later(HEAD_SECONDS, self.close_silent)

        def close_silent(self):
            if self.cycle is None:
                self.transport.close()

    return LimitedProtocol
