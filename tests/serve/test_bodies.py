"""Bodies: whole, too large by what they say or by what they are, too slow, broken off."""

import asyncio
import gzip
import json

import pytest

from kzoo.serve.bodies import BoundedBody
from kzoo.serve.inputs import Limits


def ask(chunks, headers=(), most=8, together=1000, seconds=5.0, beside=None):
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
    asyncio.run(bounded(app, most, 1000, together, seconds, beside)(scope, receive, send))
    if not sent:
        return None, None, None, got
    assert not any(message.get("more_body") for message in sent[-1:])
    return sent[0]["status"], json.loads(sent[1]["body"]), dict(sent[0]["headers"]), got


def bounded(app, most=8, elements=9, together=1000, seconds=5.0, beside=None) -> BoundedBody:
    async def at_once(function, *args, size):
        return function(*args)

    limits = Limits(body=most, bodies=together, read_seconds=seconds)
    return BoundedBody(app, limits, elements, beside or at_once)


def test_a_body_comes_whole():
    status, _, _, got = ask([b"1234", b"", b"5678"])
    assert (status, got) == (200, [b"12345678"])
    assert ask([b""])[3] == [b""]


@pytest.mark.parametrize("chunks", [[b"123456789"], [b"1234", b"5678", b"9"]])
def test_a_body_too_large_is_refused(chunks):
    status, content, headers, got = ask(chunks)
    assert (status, got) == (413, [])
    assert "8 bytes" in content["error"]
    assert headers[b"connection"] == b"close"


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("element", [b'""', b"[]", b"{}", b"0"])
def test_a_body_of_too_many_elements_is_refused_before_it_is_parsed(packed, element):
    most = 1000
    for count, expected in ((most // (1 + (element in (b"[]", b"{}"))) - 2, 200), (most, 400)):
        body = b'{"":[' + b",".join([element] * count) + b"]}"
        sent = ([gzip.compress(body, 1)], [(b"content-encoding", b"gzip")]) if packed else ([body],)
        status, content, _, got = ask(*sent, most=10**4, together=10**5)
        assert (status, len(got)) == (expected, expected == 200)
    assert "1,000 elements" in content["error"]


def test_a_client_that_asks_first_need_not_send():
    headers = [(b"content-length", b"9"), (b"expect", b"100-continue")]
    assert ask([], headers, seconds=0.05)[0] == 413


@pytest.mark.parametrize("length", [b"8", b"many"])
def test_a_client_that_asks_first_sends_what_is_not_known_to_be_too_large(length):
    headers = [(b"content-length", length), (b"expect", b"100-continue")]
    assert ask([b"12345678"], headers)[3] == [b"12345678"]


@pytest.mark.parametrize(
    ("headers", "limits", "status"),
    [
        ([(b"content-length", b"12")], {}, 413),
        ([], {}, 413),
        ([], {"most": 12, "together": 8}, 503),
    ],
)
def test_a_client_that_is_refused_is_answered_at_once_and_read_to_its_end(headers, limits, status):
    """A connection that is closed while its client sends is reset, and the answer lost."""
    happened = []

    async def receive():
        happened.append("read")
        return {"type": "http.request", "body": b"123456", "more_body": happened.count("read") < 4}

    async def send(message):
        happened.append(message.get("status") or message.get("more_body", False))

    asyncio.run(bounded(None, **limits)({"type": "http", "headers": headers}, receive, send))
    before = happened.index(status)
    assert before < 4
    assert happened == ["read"] * before + [status, True] + ["read"] * (4 - before) + [False]


def test_of_a_body_too_large_no_more_than_the_limit_is_kept():
    assert ask([b"1234"] * 5, most=8, together=8)[0] == 413


def test_what_is_no_request_is_passed_on():
    got = []

    async def app(scope, receive, send):
        got.append((scope, receive, send))

    for kind in ("lifespan", "websocket"):
        asyncio.run(bounded(app)({"type": kind}, "receive", "send"))
    assert got == [({"type": kind}, "receive", "send") for kind in ("lifespan", "websocket")]


def worked(work, messages=(), cancelled=False, begun=False):
    """Return what is sent for a client that sends messages after its request, and then nothing.

    With `begun`, it sends them after it has seen the answer's status.
    """
    sent, left = [], [{"type": "http.request", "body": b"1"}, *({"type": kind} for kind in messages)]

    async def app(scope, receive, send):
        await receive()
        if await work():
            await send({"type": "http.response.start", "status": 200})
            await asyncio.sleep(0.05)
            await send({"type": "http.response.body", "body": b"{}"})

    async def receive():
        while begun and len(left) == len(messages) and not sent:
            await asyncio.sleep(0)
        if not left:
            await asyncio.Event().wait()
        return left.pop(0)

    async def send(message):
        sent.append(message.get("status") or message["body"])

    async def main():
        task = asyncio.create_task(bounded(app)({"type": "http", "headers": []}, receive, send))
        if cancelled:
            await asyncio.sleep(0.05)
            task.cancel()
        await task
        return sent

    return asyncio.run(main())


async def answer():
    await asyncio.sleep(0)
    return True


async def failure():
    raise KeyError("none")


def test_work_is_done_for_a_client_that_stays():
    assert worked(answer) == worked(answer, ["http.request"]) == [200, b"{}"]
    with pytest.raises(KeyError):
        worked(failure)


def test_an_answer_that_has_begun_is_finished_when_the_client_goes():
    assert worked(answer, ["http.disconnect"], begun=True) == [200, b"{}"]
    assert worked(answer, ["http.disconnect"]) == [499, b""]


@pytest.mark.parametrize("messages", [["http.disconnect"], ["http.request", "http.disconnect"], []])
def test_work_ends_when_the_client_has_gone_or_the_server_does_not_wait(messages):
    ended = []

    async def endless():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    status, *content = worked(endless, messages, cancelled=not messages)
    assert (status, ended) == (499 if messages else 503, [True])
    assert messages or "stopping" in content[0].decode()


def test_a_slow_client_is_told():
    status, content, headers, got = ask([b"..."], seconds=0.05)
    assert (status, got) == (408, [])
    assert "0.05 s behind" in content["error"]
    assert headers[b"connection"] == b"close"


def test_all_bodies_together_are_bounded():
    """The first is being worked on while the second comes; it leaves its room to the third."""
    statuses = []

    async def main():
        go_on, begun = asyncio.Event(), asyncio.Event()

        async def app(scope, receive, send):
            begun.set()
            await go_on.wait()
            await send({"type": "http.response.start", "status": 200, "headers": []})

        async def request(body):
            left = [{"type": "http.request", "body": body}]

            async def receive():
                if not left:
                    await asyncio.Event().wait()
                return left.pop()

            async def send(message):
                if "status" in message:
                    statuses.append((message["status"], dict(message["headers"]).get(b"retry-after")))

            await bodies({"type": "http", "headers": []}, receive, send)

        bodies = bounded(app, together=10)
        first = asyncio.create_task(request(b"123456"))
        await begun.wait()
        await request(b"78901")
        go_on.set()
        await first
        await request(b"78901")

    asyncio.run(main())
    assert statuses == [(503, b"1"), (200, None), (200, None)]


def test_what_gzip_holds_counts_among_all_bodies():
    body, header = gzip.compress(bytes(70)), [(b"content-encoding", b"gzip")]
    assert ask([body], header, most=80, together=70 + len(body))[0] == 200
    status, content, headers, got = ask([body], header, most=80, together=69 + len(body))
    assert (status, headers[b"connection"], got) == (503, b"close", [])
    assert "try again" in content["error"]


def test_gzip_is_unpacked_up_to_the_limit():
    for name in (b" GZip ", b"gzip"):
        header = [(b"content-encoding", name)]
        assert ask([gzip.compress(b"12345678")], header, most=40)[3] == [b"12345678"]
    status, content, _, got = ask([gzip.compress(bytes(10_000))], header, most=80)
    assert (status, got) == (413, [])
    assert "80 bytes" in content["error"]


@pytest.mark.parametrize("body", [b"12345678", gzip.compress(b"12345678")[:-9], b"", gzip.compress(b"1") * 2])
def test_what_is_not_whole_gzip_is_refused(body):
    status, content, _, got = ask([body], [(b"content-encoding", b"gzip")], most=80)
    assert (status, got) == (400, [])
    assert "gzip" in content["error"]


@pytest.mark.parametrize("headers", [[], [(b"content-encoding", b"gzip")]])
def test_a_body_that_is_counted_or_unpacked_when_the_server_stops_is_told_to_try_again(headers):
    async def stopped(function, *args, size):
        raise asyncio.CancelledError

    status, content, answered, got = ask([bytes(1001)], headers, most=2000, together=2000, beside=stopped)
    assert (status, answered[b"retry-after"], got) == (503, b"1", [])
    assert "stopping" in content["error"]


def test_other_encodings_are_refused():
    status, content, _, got = ask([b"1234"], [(b"content-encoding", b"br")])
    assert (status, got) == (415, [])
    assert "Content-Encoding br" in content["error"]


def test_nobody_is_answered_when_the_client_has_gone():
    assert ask([b"1234", None]) == (None, None, None, [])
