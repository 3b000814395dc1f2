"""Reads requests' bodies: unpacks them, limits their size and time, and notices clients that leave."""

import asyncio
import contextlib
import zlib
from collections.abc import Callable, Iterator

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from kzoo.serve.batching import STOPPING
from kzoo.serve.limits import Limits

SLOWEST = 100_000  # bytes a second
PART = 2**16  # bytes of a body that are looked at in one go
LONGEST_WAIT = 0.25  # seconds: of a stall of the server, no more is counted as the client's delay
RETRY_SECONDS = 1  # what clients are told to wait that come at a busy time
READ_SECONDS = 10  # for which a refused client's body is still read
CLIENT_GONE = 499  # nginx's status for a client that did not wait for the answer


class BoundedBody:
    """ASGI middleware that reads bodies up to a size and time limit, and answers 413 or 408 beyond it.

    A body with more commas and opening brackets than it may have elements is answered with 400: as Python's
    objects, its JSON would take up to thirty times its size, and as long.

    Bodies may be compressed by gzip, as TensorFlow Serving takes them; the limit is for what they hold. Where
    the bodies of all requests together would be too large, it answers 503.

    Work for a client is cancelled when the client disconnects. When the server cancels it, at its end, the
    client is answered 503.

    Args:
        app: the application, which gets requests with their whole bodies.
        limits: of bodies.
        elements: int. Maximum number of elements of a body's JSON.
        beside: coroutine function like `Served.beside`, for what takes long.
    """

    def __init__(self, app, limits: Limits, elements: int, beside: Callable):
        self.app, self.limits, self.elements, self._beside = app, limits, elements, beside
        self._held = 0

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        incoming = Incoming(receive, self.limits.read_seconds)
        try:
            with self._room() as take:
                body = await self._whole(dict(scope["headers"]), incoming, take)
                await self._answer(body, scope, receive, send)
            return
        except ClientDisconnect:
            return
        except HTTPException as refused:
            reason, status = refused.detail, refused.status_code
        # What has been read of the body is no longer in memory.
        rest = receive if incoming.more else None
        await refuse(reason, status, scope, rest, send, self.limits.read_seconds)

    async def _answer(self, body: bytes, scope, receive, send):
        """Let the application answer, as long as the client is there.

        Raises:
            HTTPException: the server is stopping, and did not wait any longer.
        """
        begun = gone = False
        working = asyncio.current_task()

        async def replay():
            return {"type": "http.request", "body": body, "more_body": False}

        async def noted_send(message):
            nonlocal begun
            begun = True
            await send(message)

        async def watch():
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = not begun
            if gone:
                working.cancel()

        watching = asyncio.create_task(watch())
        try:
            await self.app(scope, replay, noted_send)
        except asyncio.CancelledError:  # uvicorn would answer it with an unexplained 500, and log a traceback
            if begun:
                raise
            if not gone:
                raise HTTPException(503, STOPPING) from None
            working.uncancel()
            await Response(status_code=CLIENT_GONE)(scope, receive, send)  # for the metrics
        finally:
            watching.cancel()

    @contextlib.contextmanager
    def _room(self) -> Iterator[Callable[[int], None]]:
        """Yield a function that takes a number of bytes of what all bodies may have; the end gives them back.

        The function raises `HTTPException` where too few are left.
        """
        taken = 0

        def take(count: int):
            nonlocal taken
            if self._held + count > self.limits.bodies:
                raise HTTPException(503, "the server holds too many other requests: try again later")
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
            HTTPException: it is too large, too slow, or not what its headers say; there is no room for it.
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
            raise HTTPException(415, f"Content-Encoding {encoding.decode('latin-1')}: only gzip is unpacked")
        body = bytes(body)
        if encoding == b"identity":
            if len(body) > self.elements:
                await self._beside(self._check_elements, body, size=len(body))
            return body
        plain = await self._beside(self._unpacked, body, size=self.limits.body)
        take(len(plain))
        return plain

    def _unpacked(self, body: bytes) -> bytes:
        plain = unzipped(body, self.limits.body + 1)
        self._check_size(len(plain))
        self._check_elements(plain)
        return plain

    def _check_size(self, size: int):
        if size > self.limits.body:
            raise HTTPException(413, f"the body is larger than {self.limits.body:,} bytes")

    def _check_elements(self, body: bytes):
        # All keys, and all values but the first, follow one of these; they may be in a text, too. In parts,
        # between which the event loop has its turn: 8 MiB at once would hold it up for 20 ms.
        parts = (body[start : start + PART] for start in range(0, len(body), PART))
        if sum(len(part) - len(part.translate(None, b",[{")) for part in parts) > self.elements:
            reason = f"the body has more than {self.elements:,} elements: send fewer in a request"
            raise HTTPException(400, reason)


class Incoming:
    """A body that arrives in chunks, within a time limit.

    Only the time that the server waits for the client is counted, not its own work or stalls. Each chunk adds
    the time that it takes at the slowest rate.

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
            HTTPException: the client is too slow.
            ClientDisconnect: it has left.
        """
        now, waited = asyncio.get_running_loop().time, 0.0
        receiving = asyncio.ensure_future(self._receive())
        while not receiving.done():
            if waited >= self._left:
                receiving.cancel()
                raise HTTPException(408, f"the body did not arrive within {self._seconds:g} seconds")
            begin, part = now(), min(LONGEST_WAIT, self._left - waited)
            # Where the server was held up, this finds what came meanwhile, however late it is.
            await asyncio.wait((receiving,), timeout=part)
            waited += min(now() - begin, part)
        message = receiving.result()
        if message["type"] == "http.disconnect":
            self.more = False
            raise ClientDisconnect
        chunk, self.more = message.get("body", b""), message.get("more_body", False)
        self._left = min(self._seconds, self._left - waited + len(chunk) / SLOWEST)
        return chunk


def unzipped(body: bytes, most: int) -> bytes:
    """Return the first `most` bytes of what a gzip body holds.

    Raises:
        HTTPException: it is not gzip, not whole, or has several members.
    """
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = reader.decompress(body, most)
    except zlib.error:
        plain = b""
    # Nor is more than one member read: a body of many small ones would take minutes.
    if len(plain) < most and (not reader.eof or reader.unused_data):
        raise HTTPException(400, "the body is not the one whole gzip that its Content-Encoding promises")
    return plain


async def refuse(reason: str, status: int, scope, receive, send, seconds: float = READ_SECONDS):
    """Answer a request with an error, and close its connection when the client has sent its body.

    A connection that is closed while its client is sending is reset, and the answer lost. The rest of a
    body cannot be told from a next request, so that none can follow.

    Args:
        reason: str. For the client.
        status: int. HTTP's.
        scope, receive, send: the request's, as in ASGI; without `receive`, its body has been read.
        seconds: float. The client is cut off after that time.
    """
    headers = {"Connection": "close"} | ({"Retry-After": str(RETRY_SECONDS)} if status == 503 else {})

    async def held_send(message):
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await JSONResponse({"error": reason}, status, headers)(scope, None, held_send)
    if receive is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (await receive()).get("more_body", False):
                    pass
    await send({"type": "http.response.body", "body": b""})
