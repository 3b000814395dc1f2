"""Requests to an application, without a network."""

import asyncio

import httpx


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
