"""Reads requests' bodies before anything else does, unpacks them, and limits their size and time."""

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Iterator

from starlette.requests import ClientDisconnect

from kzoo.serve.refusal import refuse

SLOWEST = 100_000  # bytes a second


class Refused(Exception):
    """A body is not taken.

    Args:
        status: int. HTTP's.
        reason: str. For the client.
    """

    def __init__(self, status: int, reason: str):
        self.status, self.reason = status, reason


class BoundedBody:
    """ASGI middleware that reads bodies up to a size and time limit, and answers 413 or 408 beyond it.

    A body with more commas and opening brackets than it may have elements is answered with 400: as Python's
    objects, its JSON would take up to thirty times its size, and as long.

    Bodies may be compressed by gzip, as TensorFlow Serving takes them; the limit is for what they hold. Where
    the bodies of all requests together would be too large, it answers 503.

    Args:
        app: the application, which gets requests with their whole bodies.
        most: int. Maximum number of bytes of a body.
        elements: int. Maximum number of elements of a body's JSON.
        together: int. Maximum number of bytes of all bodies that are being read or worked on.
        seconds: float. How long the server waits for a client that sends less than `SLOWEST`.
        beside: coroutine function like `Served.beside`, for what takes long.
    """

    def __init__(self, app, most: int, elements: int, together: int, seconds: float, beside: Callable):
        self.app, self.most, self.elements, self.together = app, most, elements, together
        self.seconds, self._beside = seconds, beside
        self._held = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        incoming = Incoming(receive, self.seconds)
        try:
            with self._room() as take:
                body = await self._whole(dict(scope["headers"]), incoming, take)
                await self.app(scope, _replayed(body, receive), send)
            return
        except ClientDisconnect:
            return
        except Refused as refused:
            reason, status = refused.reason, refused.status
        # What has been read of the body is no longer in memory.
        await refuse(reason, status, scope, receive if incoming.more else None, send, self.seconds)

    @contextlib.contextmanager
    def _room(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes a number of bytes of what all bodies may have; the end gives them back.

        The function raises `Refused` where too few are left.
        """
        taken = 0

        def take(count: int):
            nonlocal taken
            if self._held + count > self.together:
                raise Refused(503, "the server holds too many other requests: try again later")
            taken += count
            self._held += count

        try:
            yield take
        finally:
            self._held -= taken

    async def _whole(
        self, headers: dict[bytes, bytes], incoming: "Incoming", take: Callable[[int], None]
    ) -> bytes:
        """Return the body, unpacked; `take` is called with the numbers of bytes that it needs.

        Raises:
            Refused: it is too large, too slow, or not what its headers say; there is no room for it.
            ClientDisconnect: the client has left.
        """
        body, declared = bytearray(), headers.get(b"content-length", b"0")
        if declared.isdigit():
            self._check_size(int(declared))
        while incoming.more:
            chunk = await incoming.chunk()
            self._check_size(len(body) + len(chunk))
            take(len(chunk))
            body += chunk
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding not in (b"identity", b"gzip"):
            raise Refused(415, f"Content-Encoding {encoding.decode('latin-1')}: only gzip is unpacked")
        body = bytes(body)
        if encoding == b"identity":
            if len(body) > self.elements:
                await self._beside(self._check_elements, body)
            return body
        plain = await self._beside(self._unpacked, body, large=True)
        take(len(plain))
        return plain

    def _unpacked(self, body: bytes) -> bytes:
        plain = unzipped(body, self.most + 1)
        self._check_size(len(plain))
        self._check_elements(plain)
        return plain

    def _check_size(self, size: int):
        if size > self.most:
            raise Refused(413, f"the body is larger than {self.most:,} bytes")

    def _check_elements(self, body: bytes):
        # All keys, and all values but the first, follow one of these; they may be in a text, too.
        if len(body) - len(body.translate(None, b",[{")) > self.elements:
            raise Refused(400, f"the body has more than {self.elements:,} elements: send fewer in a request")


class Incoming:
    """A body that arrives in chunks, from a client that has so much time for it.

    What counts is how long the server waits for the client: not what it does meanwhile, nor what holds it
    up. Each chunk brings the time that it takes at the slowest rate.

    Args:
        receive: the request's, as in ASGI.
        seconds: float. How long the server waits for a client that sends nothing.
    """

    def __init__(self, receive, seconds: float):
        self._receive, self._seconds, self._left = receive, seconds, seconds
        self.more = True

    async def chunk(self) -> bytes:
        """Return the next chunk; `more` says whether others follow.

        Raises:
            Refused: the client is too slow.
            ClientDisconnect: it has left.
        """
        now = asyncio.get_running_loop().time
        begin, receiving = now(), asyncio.ensure_future(self._receive())
        # Where the server was held up, this finds what came meanwhile, however late it is.
        await asyncio.wait((receiving,), timeout=self._left)
        waited = now() - begin
        if not receiving.done():
            receiving.cancel()
            raise Refused(408, f"the body did not arrive within {self._seconds:g} seconds")
        message = receiving.result()
        if message["type"] == "http.disconnect":
            self.more = False
            raise ClientDisconnect
        chunk, self.more = message.get("body", b""), message.get("more_body", False)
        if waited < self._left:
            self._left = min(self._seconds, self._left - waited + len(chunk) / SLOWEST)
        return chunk


def unzipped(body: bytes, most: int) -> bytes:
    """Return the first `most` bytes of what a gzip body holds.

    Raises:
        Refused: it is not gzip, not whole, or has several members.
    """
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = reader.decompress(body, most)
    except zlib.error:
        plain = b""
    # Nor is more than one member read: a body of many small ones would take minutes.
    if len(plain) < most and (not reader.eof or reader.unused_data):
        raise Refused(400, "the body is not the one whole gzip that its Content-Encoding promises")
    return plain


def _replayed(body: bytes, receive):
    """Return a `receive` that returns the body at once, and then whatever follows."""
    waiting = [{"type": "http.request", "body": body, "more_body": False}]

    async def replay():
        return waiting.pop() if waiting else await receive()

    return replay
