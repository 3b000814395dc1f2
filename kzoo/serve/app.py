"""The server's application: the model's interface, the page, health and metrics."""

from contextlib import asynccontextmanager

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect

from kzoo.errors import UserError
from kzoo.serve.batcher import RETRY_SECONDS, Busy
from kzoo.serve.bounded_body import BoundedBody
from kzoo.serve.metrics import Counted
from kzoo.serve.other_pages import RefuseOtherPages
from kzoo.serve.page import page_routes
from kzoo.serve.rest import BROKEN, model_routes
from kzoo.serve.served import Served

CLIENT_GONE = 499  # not an HTTP status, but what servers count when the client did not wait for the answer


def create_app(served: Served) -> FastAPI:
    """Return the application that serves a preset.

    Args:
        served: the preset; it starts and stops with the application.

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
    app.add_middleware(BoundedBody, served.limits.body, served.limits.bodies, served.limits.read_seconds)
    app.add_middleware(RefuseOtherPages)
    app.add_middleware(Counted, served.metrics)
    return app


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
        return JSONResponse({"error": BROKEN if served.broken else "the model is being compiled"}, 503)

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


def _invalid(_: Request, error: RequestValidationError) -> JSONResponse:
    first = error.errors()[0]
    return _refusal(f"{'.'.join(map(str, first['loc']))}: {first['msg']}", 400)


def _gone(_: Request, error: ClientDisconnect) -> Response:
    return Response(status_code=CLIENT_GONE)  # for the metrics: nobody reads it


def _failed(_: Request, error: Exception) -> JSONResponse:
    return _refusal("the model failed; the server's log says why", 500)


HANDLERS = {
    UserError: _wrong,
    Busy: _busy,
    HTTPException: _http,
    ClientDisconnect: _gone,
    RequestValidationError: _invalid,
    Exception: _failed,
}
