"""Requests of pages that other sites serve: by the names that their browsers send."""

import asyncio
import json

import pytest

from kzoo.serve.app import RefuseOtherPages


def ask(hosts, method="GET", path="/", **headers):
    """Return the status, and the error if there is one, of a request with headers, `_` for `-` in them."""
    sent = []

    async def app(scope, receive, send):
        await send({"type": "http.response.start", "status": 200})

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        sent.append(message)

    given = [(key.replace("_", "-").encode(), value.encode()) for key, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "headers": given}
    asyncio.run(RefuseOtherPages(app, hosts)(scope, receive, send))
    return sent[0]["status"], json.loads(sent[1]["body"])["error"] if len(sent) > 1 else None


@pytest.mark.parametrize(
    "host",
    ["localhost", "localhost:8501", "LOCALHOST.", "127.0.0.1:8501", "127.1.2.3", "[::1]:8501", "a.localhost"],
)
def test_the_machine_s_own_names_are_known(host):
    assert ask((), host=host)[0] == 200
    assert ask((), host=host, origin=f"http://{host}")[0] == 200


@pytest.mark.parametrize(
    "host",
    ["rebound.example", "rebound.example:8501", "127.0.0.1.example", "10.0.0.1", "[::2]", "["],
)
def test_other_names_are_refused_where_names_are_known(host):
    for method in ("GET", "POST"):
        status, error = ask((), method, host=host)
        assert (status, repr(host) in error) == (403, True)
    assert ask(None, host=host)[0] == 200
    allowed = ask(("Rebound.example", "127.0.0.1.example"), host=host)[0]
    assert allowed == (200 if "example" in host else 403)


@pytest.mark.parametrize("origin", ["https://evil.example", "http://localhost:3000", "null"])
def test_an_origin_that_differs_is_refused(origin):
    for method in ("GET", "POST"):
        status, error = ask((), method, host="localhost:8501", origin=origin)
        assert (status, repr(origin) in error, "--allow-host NAME" in error) == (403, True, True)
    assert ask(None, "POST", host="localhost:8501", origin=origin)[0] == 200


def test_a_proxy_on_the_machine_may_keep_the_host_s_name_or_not():
    hosts = ("translate.example",)
    for host in ("translate.example", "127.0.0.1:8501"):
        assert ask(hosts, "POST", host=host, origin="https://translate.example")[0] == 200
        assert ask(hosts, "POST", host=host, origin="https://evil.example")[0] == 403


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/metrics"])
def test_probes_may_ask_by_address(path):
    assert ask(("translate.example",), path=path, host="10.1.2.3:8501")[0] == 200


def test_programs_that_send_no_names_are_let_in():
    assert ask(())[0] == 200
    assert ask((), "POST", host="localhost")[0] == 200


def test_what_a_browser_sends_for_another_site_is_refused_but_links():
    for hosts in (None, ()):
        assert ask(hosts, "POST", host="localhost", sec_fetch_site="cross-site")[0] == 403
        assert ask(hosts, "GET", host="localhost", sec_fetch_site="cross-site")[0] == 200
