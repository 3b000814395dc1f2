"""Reads requests' bodies before anything else does, and limits their size and time."""

import asyncio

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse


class BoundedBody:
    """ASGI middleware that reads bodies up to a size and time limit, and answers 413 or 408 beyond it.

    Args:
        app: the application, which gets requests with their whole bodies.
        most: int. Maximum number of bytes of a body.
        seconds: float. The time that a client has to send it.
    """

    def __init__(self, app, most: int, seconds: float):
        self.app, self.most, self.seconds = app, most, seconds

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = bytearray()
        try:
            async with asyncio.timeout(self.seconds):
                size = await self._read(scope, receive, body)
        except ClientDisconnect:
            return
        except TimeoutError:
            await _refusal(408, f"the body did not arrive within {self.seconds:g} seconds")(
                scope, receive, send
            )
            return
        if size > self.most:
            await _refusal(413, f"the body is larger than {self.most:,} bytes")(scope, receive, send)
            return
        await self.app(scope, _replayed(bytes(body), receive), send)

    async def _read(self, scope, receive, body: bytearray) -> int:
        """Read the body, and return its size; of a body that is too large, at most a part is kept."""
        headers = dict(scope["headers"])
        declared = headers.get(b"content-length", b"0")
        if b"expect" in headers and declared.isdigit() and int(declared) > self.most:
            return int(declared)  # the client asks before it sends
        size, more = 0, True
        # A body that is too large is still read: a client that is sending sees no answer before it is done.
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            chunk, more = message.get("body", b""), message.get("more_body", False)
            size += len(chunk)
            if size <= self.most:
                body += chunk
        return size


def _replayed(body: bytes, receive):
    """Return a `receive` that returns the body at once, and then whatever follows."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay():
        return waiting.pop() if waiting else await receive()

    return replay


def _refusal(status: int, reason: str) -> JSONResponse:
    # The rest of the body cannot be told from a next request.
    return JSONResponse({"error": reason}, status, headers={"Connection": "close"})
