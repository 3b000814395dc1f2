"""The server's application: the model's interface, the page, health and metrics; who may ask, and errors."""

import ipaddress
import math
from collections.abc import Collection
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from kzoo.errors import UserError
from kzoo.serve.batching import Busy
from kzoo.serve.bodies import RETRY_SECONDS, BoundedBody, refuse
from kzoo.serve.images import image_kind
from kzoo.serve.metrics import Counted
from kzoo.serve.page import page_routes
from kzoo.serve.rest import model_routes
from kzoo.serve.served import BROKEN, Served

# Elements of JSON that a request may have: 256 sentences of 800 commas each.
ELEMENTS = 200_000


def create_app(served: Served, hosts: Collection[str] | None = None) -> FastAPI:
    """Return the application that serves a preset.

    Args:
        served: the preset; it starts and stops with the application.
        hosts: names by which clients may call the server, beside the machine's own; `None`: any.

    Example:

    >>> served = Served(kzoo.presets.load("pope_tiny_multi30k_en_de"), "pope")
    >>> uvicorn.run(create_app(served), port=8501)
    """

    @asynccontextmanager
    async def lifespan(_):
        await served.start()
        yield
        await served.stop()

    # The interface is TensorFlow Serving's, and a redirection would go to the host that the client names.
    app = FastAPI(lifespan=lifespan, openapi_url=None, redirect_slashes=False)
    for routes in (page_routes, model_routes, operation_routes):
        app.include_router(routes(served))
    for kind in (UserError, Busy, HTTPException, Exception):
        app.add_exception_handler(kind, _refusal)
    app.add_middleware(BoundedBody, served.limits, most_elements(served), served.beside)
    app.add_middleware(RefuseOtherPages, hosts)
    app.add_middleware(Counted, served.metrics)
    return app


def most_elements(served: Served) -> int:
    """Return how many elements of JSON a request may have: more where each sentence has many numbers."""
    shape = served.image_shape or ()
    return ELEMENTS + (served.limits.sentences * math.prod(shape) if image_kind(shape) == "features" else 0)


def operation_routes(served: Served) -> APIRouter:
    """Return the routes for the server's operators: whether it is alive and ready, and its metrics."""
    router = APIRouter()

    @router.api_route("/healthz", methods=["GET", "HEAD"])
    async def alive() -> JSONResponse:
        return JSONResponse({"error": BROKEN}, 503) if served.broken else JSONResponse({"status": "alive"})

    @router.api_route("/readyz", methods=["GET", "HEAD"])
    async def ready() -> JSONResponse:
        if served.ready:
            return JSONResponse({"status": "ready"})
        return JSONResponse({"error": served.readiness}, 503)

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(served.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


async def _refusal(_: Request, error: Exception) -> JSONResponse:
    """Return the answer to a request that raised an error."""
    status, text, headers = 500, "the model failed; the server's log says why", None
    if isinstance(error, UserError):
        status, text = 400, str(error)
    elif isinstance(error, Busy):
        status, text, headers = 503, str(error), {"Retry-After": str(RETRY_SECONDS)}
    elif isinstance(error, HTTPException):
        status, text, headers = error.status_code, error.detail, error.headers
    # An error may quote halves of characters from a request, which no encoding has.
    return JSONResponse({"error": text.encode(errors="backslashreplace").decode()}, status, headers)


class RefuseOtherPages:
    """ASGI middleware that answers 403 to what browsers send for a page of another site.

    Browsers send simple requests without asking the server first, even to servers on the user's own machine,
    and say so, to HTTPS and the machine itself, in a header that pages cannot change. Links are followed:
    answers to GET change nothing. A page whose own name is made to lead to this server (DNS rebinding) sends
    that name as Host: it is refused where the names are known.

    Args:
        app: the application.
        hosts: names by which clients may call the server, beside those of the machine itself (`localhost`,
            127.0.0.1, `[::1]`); another site's Origin is then refused, too. `None`: any.
    """

    def __init__(self, app, hosts: Collection[str] | None = None):
        self.app = app
        self._hosts = None if hosts is None else {host_name(host) for host in hosts}

    async def __call__(self, scope, receive, send):
        reason = self._reason(scope["method"], dict(scope["headers"])) if scope["type"] == "http" else None
        if reason is None:
            await self.app(scope, receive, send)
        else:
            await refuse(reason, 403, scope, receive, send)

    def _reason(self, method: str, headers: dict[bytes, bytes]) -> str | None:
        """Return why a request is refused."""
        host, origin = (headers.get(key, b"").decode("latin-1") for key in (b"host", b"origin"))
        if self._hosts is not None:
            if host and not is_loopback(name := host_name(host)) and name not in self._hosts:
                return f"Host {host[:80]!r} is not this server's: --allow-host NAME lets a proxy's name in"
            site = origin.partition("://")[2]
            if origin and site != host and host_name(site) not in self._hosts:
                return f"a page of another site asks: Origin {origin[:80]!r}, Host {host[:80]!r}"
        if method not in ("GET", "HEAD") and headers.get(b"sec-fetch-site") == b"cross-site":
            return "a page of another site asks: only this server's own page may"
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without port; `""` where there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Return whether a host's name or address is of the machine itself."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
