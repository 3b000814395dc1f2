"""Reads requests' bodies before anything else does, unpacks them, and limits their size and time."""

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Iterator

from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse

from kzoo.serve.batcher import RETRY_SECONDS

# In Python an empty list of two bytes of JSON takes 80.
MOST_BRACKETS = 200_000


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

    A body with more than `MOST_BRACKETS` opening brackets, which as JSON would take many times its size, is
    answered with 400.

    Bodies may be compressed by gzip, as TensorFlow Serving takes them; the limit is for what they hold. Where
    the bodies of all requests together would be too large, it answers 503.

    Args:
        app: the application, which gets requests with their whole bodies.
        most: int. Maximum number of bytes of a body.
        together: int. Maximum number of bytes of all bodies that are being read or worked on.
        seconds: float. The time that a client has to send its body.
    """

    def __init__(self, app, most: int, together: int, seconds: float):
        self.app, self.most, self.together, self.seconds = app, most, together, seconds
        self._held = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        with self._room() as take:
            try:
                body = await self._whole(dict(scope["headers"]), receive, take)
            except ClientDisconnect:
                return
            except Refused as refused:
                # The rest of the body cannot be told from a next request.
                headers = {"Connection": "close"}
                if refused.status == 503:
                    headers["Retry-After"] = str(RETRY_SECONDS)
                await JSONResponse({"error": refused.reason}, refused.status, headers)(scope, receive, send)
                return
            await self.app(scope, _replayed(body, receive), send)

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

    async def _whole(self, headers: dict[bytes, bytes], receive, take: Callable[[int], None]) -> bytes:
        """Return the body, unpacked; `take` is called with the numbers of bytes that it needs.

        Raises:
            Refused: it is too large, too slow, or not what its headers say; there is no room for it.
            ClientDisconnect: the client has left.
        """
        body, too_large = bytearray(), Refused(413, f"the body is larger than {self.most:,} bytes")
        try:
            async with asyncio.timeout(self.seconds):
                size = await self._read(headers, receive, body, take)
        except TimeoutError:
            raise Refused(408, f"the body did not arrive within {self.seconds:g} seconds") from None
        if size > self.most:
            raise too_large
        encoding = headers.get(b"content-encoding", b"identity").strip().lower()
        if encoding == b"identity":
            return _with_few_lists(bytes(body))
        if encoding != b"gzip":
            raise Refused(415, f"Content-Encoding {encoding.decode('latin-1')}: only gzip is unpacked")
        plain = unzipped(body, self.most + 1)
        if len(plain) > self.most:
            raise too_large
        take(len(plain))
        return _with_few_lists(plain)

    async def _read(self, headers: dict[bytes, bytes], receive, body: bytearray, take: Callable) -> int:
        """Read the body, taking room for it, and return its size; one too large is kept in part at most."""
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
                take(len(chunk))
                body += chunk
        return size


def _with_few_lists(body: bytes) -> bytes:
    if body.count(b"[") + body.count(b"{") > MOST_BRACKETS:
        raise Refused(400, f"the body has more than {MOST_BRACKETS:,} brackets: send fewer rows in a request")
    return body


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
