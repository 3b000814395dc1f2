"""Work for clients that stay, and for clients that go."""

import asyncio

import pytest
from fastapi import Request
from starlette.requests import ClientDisconnect

from kzoo.serve.connected import while_connected


def run(work, messages=()):
    """Await work for a client that sends messages, and then nothing; return its result."""
    left = list(messages)

    async def receive():
        if not left:
            await asyncio.Event().wait()
        return {"type": left.pop(0)}

    async def main():
        return await while_connected(Request({"type": "http"}, receive), work)

    return asyncio.run(main())


async def answer():
    await asyncio.sleep(0)
    return 7


async def failure():
    raise KeyError("none")


def test_work_is_done_for_a_client_that_stays():
    assert run(answer()) == 7
    assert run(answer(), ["http.request"]) == 7
    with pytest.raises(KeyError):
        run(failure())


def test_work_ends_when_the_client_has_gone():
    ended = []

    async def endless():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    for messages in (["http.disconnect"], ["http.request", "http.request", "http.disconnect"]):
        with pytest.raises(ClientDisconnect):
            run(endless(), messages)
    assert ended == [True, True]
