"""Work for a client, cancelled when the client disconnects or the server ends."""

import asyncio
from collections.abc import Coroutine

from fastapi import Request
from starlette.requests import ClientDisconnect

from kzoo.serve.batcher import STOPPING, Busy


async def while_connected(request: Request, work: Coroutine):
    """Return what `work` returns; cancel it once the client has closed the connection.

    Args:
        request: the client's request, whose body has been read.
        work: what the request asks for.

    Raises:
        ClientDisconnect: the client has disconnected.
        Busy: the server is stopping, and did not wait any longer.
    """
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    except asyncio.CancelledError:  # uvicorn would answer it with an unexplained 500, and log a traceback
        raise Busy(STOPPING) from None
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
