"""Work for a client, given up when the client has gone."""

import asyncio
from collections.abc import Coroutine

from fastapi import Request
from starlette.requests import ClientDisconnect


async def while_connected(request: Request, work: Coroutine):
    """Return what `work` returns; cancel it once the client has closed the connection.

    Args:
        request: the client's, its body read.
        work: what it asks for.

    Raises:
        ClientDisconnect: the client has gone.
    """
    working, gone = asyncio.ensure_future(work), asyncio.ensure_future(_gone(request))
    try:
        await asyncio.wait((working, gone), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientDisconnect
        return working.result()
    finally:
        working.cancel()
        gone.cancel()


async def _gone(request: Request):
    while (await request.receive())["type"] != "http.disconnect":
        pass
