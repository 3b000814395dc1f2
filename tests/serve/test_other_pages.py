"""Requests of pages that other sites serve: by the names that their browsers send."""

import asyncio
import json

import httpx
import pytest
from tiny_models import pope

from kzoo.serve import Served, create_app
from kzoo.serve.app import RefuseOtherPages

SITE, OTHER = "https://site.example", "https://evil.example"


def ask(hosts, method="GET", path="/", origins=(), **headers):
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
    asyncio.run(RefuseOtherPages(app, hosts, origins)(scope, receive, send))
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


def test_a_site_that_is_named_may_send_anything_to_this_server_s_name():
    cross = {"origins": (SITE,), "sec_fetch_site": "cross-site"}
    for hosts in (None, ()):
        for method in ("GET", "POST", "OPTIONS"):
            assert ask(hosts, method, host="localhost:8501", origin=SITE, **cross)[0] == 200
            for origin in (OTHER, f"{SITE}:8080", "http://site.example", f"{SITE}.evil.example"):
                status = ask(hosts, method, host="localhost:8501", origin=origin, **cross)[0]
                assert status == (200 if method == "GET" and hosts is None else 403)
    assert ask((), "POST", host="rebound.example", origin=SITE, **cross)[0] == 403
    assert ask(("proxy.example",), "POST", host="proxy.example", origin=SITE, **cross)[0] == 200


def test_a_browser_may_show_answers_to_the_named_sites_alone():
    """As CORS asks for: https://fetch.spec.whatwg.org/#http-cors-protocol"""
    predict = "/v1/models/tiny:predict"
    preflight = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type"}

    async def main():
        app = create_app(Served(pope(), "tiny"), (), (SITE, "http://localhost:3000"))
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost:8501") as client:
            asked = [await client.options(predict, headers={"Origin": SITE, **preflight})]
            for origin in (SITE, "http://localhost:3000", OTHER):
                asked.append(await client.get("/v1/models/tiny", headers={"Origin": origin}))
            asked.append(await client.post(predict, headers={"Origin": SITE}, content=b"{"))
            return [*asked, await client.get("/v1/models/tiny")]

    asked, shown, local, other, wrong, program = asyncio.run(main())
    allowed = "access-control-allow-origin"
    assert (asked.status_code, asked.headers[allowed]) == (200, SITE)
    assert "POST" in asked.headers["access-control-allow-methods"]
    assert "content-type" in asked.headers["access-control-allow-headers"].lower()
    assert (shown.status_code, shown.headers[allowed], shown.headers["vary"]) == (200, SITE, "Origin")
    assert (local.status_code, local.headers[allowed]) == (200, "http://localhost:3000")
    assert (other.status_code, allowed in other.headers) == (403, False)
    assert (wrong.status_code, wrong.headers[allowed]) == (400, SITE)  # so that the page can say why
    assert (program.status_code, allowed in program.headers) == (200, False)
    for answer in (asked, shown, local, wrong):
        assert "access-control-allow-credentials" not in answer.headers
