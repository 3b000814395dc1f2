"""An answer to a request whose body is not, or not wholly, read."""

import asyncio
import contextlib

from starlette.responses import JSONResponse

RETRY_SECONDS = 1  # what clients are told to wait that come at a busy time
READ_SECONDS = 10  # how long what a refused client still sends is read


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
