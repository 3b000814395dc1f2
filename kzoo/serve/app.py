"""The server's application: routes, checks of where requests come from, and responses to errors."""

import asyncio
import ipaddress
import math
from collections.abc import Collection, Sequence
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kzoo.errors import UserError
from kzoo.serve.batching import Busy
from kzoo.serve.bodies import RETRY_SECONDS, BoundedBody, refuse
from kzoo.serve.files import Documents
from kzoo.serve.inputs import image_kind
from kzoo.serve.keys import Keys, RequireKey
from kzoo.serve.libretranslate import libretranslate_routes
from kzoo.serve.metrics import Counted
from kzoo.serve.openapi import openapi_route
from kzoo.serve.page import page_routes
from kzoo.serve.rest import model_routes
from kzoo.serve.served import BROKEN, Served

# Maximum elements of a request's JSON: 256 sentences with 800 commas each.
ELEMENTS = 200_000
# Probes and Prometheus send the machine's address as Host. The answers are of no use to another site.
BY_ADDRESS = ("/healthz", "/readyz", "/metrics", "/health")


def create_app(
    served: Served | Sequence[Served],
    hosts: Collection[str] | None = None,
    origins: Collection[str] = (),
    keys: Keys | None = None,
    documents: Documents | None = None,
) -> Starlette:
    """Return the application that serves a preset, or several.

    Args:
        served: the preset, or presets of different names that share their limits and metrics. They start and
            stop with the application.
        hosts: allowed host names, besides the machine's own; `None` allows any.
        origins: sites, such as `https://site.example`, whose pages may send requests and read the answers.
        keys: clients must send one of them, and there is no page. `None`: no keys.
        documents: the translated documents; applications that follow one another share them.

    Example:

    >>> served = Served(kzoo.presets.load("pope_small_multi30k_en_de"), "pope")
    >>> uvicorn.run(create_app(served), port=8501)
    """

    models = [served] if isinstance(served, Served) else list(served)
    first = models[0]

    shared = {"allow_origins": origins, "allow_methods": ["GET", "POST"], "expose_headers": ["Retry-After"]}
    shared["allow_headers"] = ["Authorization"]
    app = Starlette(
        routes=[
            *model_routes(models),
            *libretranslate_routes(models, keys, documents or Documents()),
            *(page_routes(models) if keys is None else ()),
            *operation_routes(models),
            openapi_route(models),
        ],
        middleware=[
            Middleware(Counted, first.metrics),
            Middleware(RefuseOtherPages, hosts, origins),
            *([Middleware(CORSMiddleware, **shared)] if origins else ()),
            *([Middleware(RequireKey, keys)] if keys else ()),
            Middleware(BoundedBody, first.limits, max(map(most_elements, models)), first.in_thread),
        ],
        exception_handlers=dict.fromkeys((UserError, Busy, HTTPException, Exception), _refusal),
        lifespan=lambda _: running(models),
    )
    # TensorFlow Serving does not redirect. A redirect would go to the host that the client names.
    app.router.redirect_slashes = False
    return app


@asynccontextmanager
async def running(models: Sequence[Served]):
    """Run presets during the block."""
    await asyncio.gather(*(model.start() for model in models))
    yield
    await asyncio.gather(*(model.stop() for model in models))


def most_elements(served: Served) -> int:
    """Return the maximum elements of a request's JSON: more if each sentence has features."""
    shape = served.translator.image_shape or ()
    return ELEMENTS + (served.limits.sentences * math.prod(shape) if image_kind(shape) == "features" else 0)


def operation_routes(models: Sequence[Served]) -> list[Route]:
    """Return the routes for the server's operators: health, readiness and metrics."""

    async def alive(_) -> Response:
        broken = any(model.readiness == BROKEN for model in models)
        return JSONResponse({"error": BROKEN}, 503) if broken else JSONResponse({"status": "alive"})

    async def ready(_) -> Response:
        why = next((model.readiness for model in models if model.readiness), "")
        return JSONResponse({"error": why}, 503) if why else JSONResponse({"status": "ready"})

    async def metrics(_) -> Response:
        return Response(models[0].metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return [Route("/healthz", alive), Route("/readyz", ready), Route("/metrics", metrics)]


async def _refusal(_: Request, error: Exception) -> JSONResponse:
    """Return the response to a request that raised an error."""
    status, text, headers = 500, "the model failed; the server's log says why", None
    if isinstance(error, UserError):
        status, text = 400, str(error)
    elif isinstance(error, Busy):
        status, text, headers = 503, str(error), {"Retry-After": str(RETRY_SECONDS)}
    elif isinstance(error, HTTPException):
        status, text, headers = error.status_code, error.detail, error.headers
    return JSONResponse({"error": text}, status, headers)


class RefuseOtherPages:
    """ASGI middleware that answers 403 to requests from another site's page.

    Browsers send simple cross-site requests to any server, even to one on the user's own machine. They mark
    them with the header Sec-Fetch-Site, which pages cannot change. GET is allowed, because it changes
    nothing. `hosts` also stops DNS rebinding, where an attacker's host name resolves to this server: the
    browser sends that name as Host.

    Args:
        app: the application.
        hosts: allowed host names, besides the machine's own (`localhost`, 127.0.0.1, `[::1]`). Requests with
            another Host or Origin are refused. `None` allows any.
        origins: sites whose pages may send any request; their Host is checked, too.
    """

    def __init__(self, app, hosts: Collection[str] | None = None, origins: Collection[str] = ()):
        self.app, self._origins = app, origins
        self._hosts = None if hosts is None else {host_name(host) for host in hosts}

    async def __call__(self, scope, receive, send):
        checked = scope["type"] == "http" and scope["path"] not in BY_ADDRESS
        reason = self._reason(scope["method"], dict(scope["headers"])) if checked else None
        if reason is None:
            await self.app(scope, receive, send)
        else:
            await refuse(reason, 403, scope, receive, send)

    def _reason(self, method: str, headers: dict[bytes, bytes]) -> str | None:
        """Return why a request is refused."""
        host, origin = (headers.get(key, b"").decode("latin-1") for key in (b"host", b"origin"))
        name, names = host_name(host), self._hosts
        if names is not None and host and not is_loopback(name) and name not in names:
            return f"Host {host[:80]!r} is not this server's name; --allow-host NAME allows a proxy's"
        if origin in self._origins:
            return None
        site = origin.partition("://")[2]
        if names is not None and origin and site != host and host_name(site) not in names:
            sent = f"Origin {origin[:80]!r}, Host {host[:80]!r}"
            how = "--allow-origin ORIGIN allows it, --allow-host NAME a proxy's name"
            return f"the request is from another site's page: {sent}; {how}"
        if method not in ("GET", "HEAD") and headers.get(b"sec-fetch-site") == b"cross-site":
            return "the request is from another site's page; only this server's page may send it"
        return None


def host_name(host: str) -> str:
    """Return the name in a Host header, without port; `""` if there is none."""
    try:
        return (urlsplit(f"//{host}").hostname or "").removesuffix(".")
    except ValueError:
        return ""


def is_loopback(name: str) -> bool:
    """Return whether a host name or address is the machine itself."""
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return name == "localhost" or name.endswith(".localhost")
