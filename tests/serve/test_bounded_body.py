"""Bodies: whole, too large by what they say or by what they are, too slow, broken off."""

import asyncio
import json

import pytest

from kzoo.serve.bounded_body import BoundedBody


def ask(chunks, headers=(), most=8, seconds=5.0):
    """Return status, content and the headers that a client sees, and what the application got."""
    got, sent = [], []

    async def app(scope, receive, send):
        got.append((await receive())["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"{}"})

    left = list(chunks)

    async def receive():
        if not left:
            await asyncio.Event().wait()  # a client that sends no more
        chunk = left.pop(0)
        if chunk is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": chunk, "more_body": bool(left) or chunk == b"..."}

    async def send(message):
        sent.append(message)

    scope = {"type": "http", "method": "POST", "path": "/", "headers": list(headers)}
    asyncio.run(BoundedBody(app, most, seconds)(scope, receive, send))
    if not sent:
        return None, None, None, got
    return sent[0]["status"], json.loads(sent[1]["body"]), dict(sent[0]["headers"]), got


def test_a_body_comes_whole():
    status, _, _, got = ask([b"1234", b"", b"5678"])
    assert (status, got) == (200, [b"12345678"])
    assert ask([b""])[3] == [b""]


@pytest.mark.parametrize("chunks", [[b"123456789"], [b"1234", b"5678", b"9"]])
def test_a_body_too_large_is_refused(chunks):
    status, content, headers, got = ask(chunks)
    assert (status, got) == (413, [])
    assert content == {"error": "the body is larger than 8 bytes"}
    assert headers[b"connection"] == b"close"


def test_a_client_that_asks_first_need_not_send():
    headers = [(b"content-length", b"9"), (b"expect", b"100-continue")]
    assert ask([], headers)[0] == 413


def test_a_slow_client_is_told():
    status, content, headers, got = ask([b"..."], seconds=0.05)
    assert (status, got) == (408, [])
    assert content == {"error": "the body did not arrive within 0.05 seconds"}
    assert headers[b"connection"] == b"close"


def test_nobody_is_answered_when_the_client_has_gone():
    assert ask([b"1234", None]) == (None, None, None, [])
