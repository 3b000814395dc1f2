"""Reads request bodies: decompresses them, limits their size and time, and detects disconnected clients."""

import asyncio
import contextlib
import zlib
from collections.abc import Callable

from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from kzoo.serve.batching import STOPPING
from kzoo.serve.inputs import Limits

SLOWEST = 100_000  # bytes per second, of a request or of an answer
RETRY_SECONDS = 1  # Retry-After of answers with 503
READ_SECONDS = 10  # time to read the rest of a refused body
CHALLENGE = {"WWW-Authenticate": "Bearer"}  # of answers with 401
CLIENT_GONE = 499  # nginx's status for a client that left


class BoundedBody:
    """ASGI middleware that reads whole bodies, and rejects those beyond the limits.

    As in TensorFlow Serving, a body may be compressed with gzip; the limits apply to its contents. Work for a
    client is cancelled when the client disconnects. If the server cancels the work because it is stopping,
    the client gets 503.

    Args:
        app: the application.
        limits: of bodies.
        elements: int. Maximum elements of a body's JSON. As Python objects, they would take up to thirty
            times the body's size.
        in_thread: coroutine function like `Served.in_thread`, for slow work.
    """

    def __init__(self, app, limits: Limits, elements: int, in_thread: Callable):
        self.app, self.limits, self.elements, self._in_thread = app, limits, elements, in_thread
        self._buffered = 0  # bytes of all bodies

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        taken, more = 0, True

        def take(count: int):
            nonlocal taken
            if self._buffered + count > self.limits.bodies:
                raise HTTPException(503, "the server holds too many other requests: try again later")
            taken += count
            self._buffered += count

        async def arriving():
            nonlocal more
            message = await receive()
            more = message.get("more_body", False)
            return message

        try:
            body = await self._whole(Request(scope, arriving), take)
            await self._answer(body, scope, receive, send)
            return
        except ClientDisconnect:
            return
        except HTTPException as refused:
            reason, status = refused.detail, refused.status_code
        finally:
            self._buffered -= taken
        if reason == STOPPING:
            more = False  # there is no time to read the rest
        await refuse(reason, status, scope, receive if more else None, send, self.limits.read_seconds)

    async def _answer(self, body: bytes, scope, receive, send):
        """Let the application answer while the client is connected.

        Raises:
            HTTPException: the server stopped waiting for the answer.
        """
        started = gone = False
        working = asyncio.current_task()

        async def replay():
            return {"type": "http.request", "body": body, "more_body": False}

        async def noted_send(message):
            nonlocal started
            started = True
            await send(message)

        async def watch():
            nonlocal gone
            while (await receive())["type"] != "http.disconnect":
                pass
            gone = not started
            if gone:
                working.cancel()

        watching = asyncio.create_task(watch())
        try:
            await self.app(scope, replay, noted_send)
        except asyncio.CancelledError:  # uvicorn would send an unexplained 500, and log a traceback
            if started:
                raise
            if not gone:
                raise HTTPException(503, STOPPING) from None
            working.uncancel()
            await Response(status_code=CLIENT_GONE)(scope, receive, send)  # for the metrics
        finally:
            watching.cancel()

    async def _whole(self, request: Request, take: Callable[[int], None]) -> bytes:
        """Return the decompressed body; `take` reserves memory for a number of bytes.

        Raises:
            HTTPException: the body is too large, too slow, or damaged; there is no memory for it; the server
                stops.
            ClientDisconnect: the client has left.
        """
        body, seconds, now = bytearray(), self.limits.read_seconds, asyncio.get_running_loop().time
        declared = request.headers.get("content-length", "0")
        if declared.isdigit():
            self._check_size(int(declared))
        try:
            async with asyncio.timeout(seconds) as limit:
                async for chunk in request.stream():
                    self._check_size(len(body) + len(chunk))
                    take(len(chunk))
                    body += chunk
                    limit.reschedule(min(now() + seconds, limit.when() + len(chunk) / SLOWEST))
            encoding, body = request.headers.get("content-encoding", "identity").strip().lower(), bytes(body)
            if encoding not in ("identity", "gzip"):
                raise HTTPException(415, f"Content-Encoding {encoding}: only gzip is unpacked")
            if encoding == "gzip":
                body = await self._in_thread(unzipped, body, self.limits.body + 1, size=self.limits.body)
                self._check_size(len(body))
                take(len(body))
            if len(body) > self.elements:
                await self._in_thread(self._check_elements, body, size=len(body))
            return body
        except asyncio.CancelledError:  # the server stops
            raise HTTPException(503, STOPPING) from None
        except TimeoutError:
            reason = f"the body came too slowly: {seconds:g} s behind {SLOWEST // 1000:g} kB/s"
            raise HTTPException(408, reason) from None

    def _check_size(self, size: int):
        if size > self.limits.body:
            raise HTTPException(413, f"the body is larger than {self.limits.body:,} bytes")

    def _check_elements(self, body: bytes):
        # Each key, and each value but the first, follows one of these. Texts may contain them, too.
        if sum(map(body.count, (b",", b"[", b"{"))) > self.elements:
            reason = f"the body has more than {self.elements:,} elements: send fewer in a request"
            raise HTTPException(400, reason)


def unzipped(body: bytes, most: int) -> bytes:
    """Return the first `most` bytes of a gzip body's contents.

    Raises:
        HTTPException: the body is not gzip, incomplete, or has several members.
    """
    reader = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
    try:
        plain = reader.decompress(body, most)
    except zlib.error:
        plain = b""
    # Only one member is read: a body of many small ones would take minutes.
    if len(plain) < most and (not reader.eof or reader.unused_data):
        raise HTTPException(400, "Content-Encoding is gzip, but the body is not one complete gzip file")
    return plain


async def refuse(reason: str, status: int, scope, receive, send, seconds: float = READ_SECONDS):
    """Answer a request with an error, read the rest of its body, and close the connection.

    If the connection closed earlier, the client would get a reset instead of the answer.

    Args:
        reason: str. Message for the client.
        status: int. HTTP status.
        scope, receive, send: the request's, as in ASGI; `receive` is `None` if the body has been read.
        seconds: float. Maximum time to read the rest of the body.
    """
    more = {401: CHALLENGE, 503: {"Retry-After": str(RETRY_SECONDS)}}
    headers = {"Connection": "close", **more.get(status, {})}

    async def unfinished_send(message):
        await send({**message, "more_body": True} if message["type"] == "http.response.body" else message)

    await JSONResponse({"error": reason}, status, headers)(scope, None, unfinished_send)
    if receive is not None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while (await receive()).get("more_body", False):
                    pass
    await send({"type": "http.response.body", "body": b""})
