"""Requests to an application without a network, and servers in threads."""

import asyncio
import contextlib
import threading
import time

import httpx
import uvicorn
from tiny_models import BEAM

from kzoo.decoding import SearchSettings
from kzoo.serve import Limits, Served, create_app, reserved

LIMITS = Limits(characters=200, sentences=4, body=20_000)


def answers(app, requests) -> list[httpx.Response]:
    """Return the answers to requests: method, path, and the other arguments of httpx's `request`."""

    async def main():
        transport = httpx.ASGITransport(app)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://test", timeout=300) as client,
        ):
            return [await client.request(method, path, **more) for method, path, more in requests]

    return asyncio.run(main())


@contextlib.contextmanager
def running(translator, **options):
    """Give the address of a server in a thread."""
    translator.search = SearchSettings(BEAM)
    served = Served(translator, "tiny_model", max_batch=1, limits=LIMITS, **options)
    with reserved("127.0.0.1", 0) as bound:
        server = uvicorn.Server(uvicorn.Config(create_app(served), log_level="warning"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [bound]})
        thread.start()
        while not server.started:
            time.sleep(0.01)
        try:
            yield "http://{}:{}".format(*bound.getsockname())
        finally:
            server.should_exit = True
            thread.join()
