"""The server's application: the model's interface, the page, health and metrics."""

import math
from collections.abc import Collection
from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from kzoo.errors import UserError
from kzoo.serve.batcher import Busy
from kzoo.serve.bounded_body import BoundedBody
from kzoo.serve.metrics import Counted
from kzoo.serve.other_pages import RefuseOtherPages
from kzoo.serve.page import image_kind, page_routes
from kzoo.serve.refusal import RETRY_SECONDS
from kzoo.serve.rest import model_routes
from kzoo.serve.served import BROKEN, Served

# Elements of JSON that a request may have: 256 sentences of 800 commas each.
ELEMENTS = 200_000
CLIENT_GONE = 499  # not an HTTP status, but what servers count when the client did not wait for the answer


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
    for error, handler in HANDLERS.items():
        app.add_exception_handler(error, handler)
    limits = served.limits
    app.add_middleware(
        BoundedBody, limits.body, most_elements(served), limits.bodies, limits.read_seconds, served.beside
    )
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
        error = served.readiness
        return JSONResponse({"error": error}, 503) if error else JSONResponse({"status": "ready"})

    @router.get("/metrics")
    async def metrics() -> Response:
        return Response(served.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    return router


def _refusal(text: str, status: int, headers: dict | None = None) -> JSONResponse:
    # An error may quote halves of characters from a request, which no encoding has.
    return JSONResponse({"error": text.encode(errors="backslashreplace").decode()}, status, headers)


def _wrong(_: Request, error: UserError) -> JSONResponse:
    return _refusal(str(error), 400)


def _busy(_: Request, error: Busy) -> JSONResponse:
    return _refusal(str(error), 503, {"Retry-After": str(RETRY_SECONDS)})


def _http(_: Request, error: HTTPException) -> JSONResponse:
    return _refusal(error.detail, error.status_code, error.headers)


def _gone(_: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=CLIENT_GONE)  # for the metrics: nobody reads it


def _failed(_: Request, error: Exception) -> JSONResponse:
    return _refusal("the model failed; the server's log says why", 500)


HANDLERS = {
    UserError: _wrong,
    Busy: _busy,
    HTTPException: _http,
    ClientDisconnect: _gone,
    Exception: _failed,
}
