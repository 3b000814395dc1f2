"""TensorFlow Serving's REST interface: https://www.tensorflow.org/tfx/serving/api_rest"""

import re

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import JSONResponse

from kzoo.errors import UserError
from kzoo.serve.connected import while_connected
from kzoo.serve.predict import predict
from kzoo.serve.requests import RequestReader, answer
from kzoo.serve.served import BROKEN, Served
from kzoo.serve.signatures import metadata, signatures

MODEL = r"(?i)models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]{1,18})|/labels/(?P<label>[^/:]+))?"
ASKED = re.compile(MODEL + r"(?P<metadata>/metadata)?")
CALLED = re.compile(MODEL + r":(?P<verb>classify|regress|predict)")


def model_routes(served: Served) -> APIRouter:
    """Return the routes below /v1 of the one model that is served, in its one version."""
    router, reader = APIRouter(prefix="/v1"), RequestReader(signatures(served), served.limits)

    @router.get("/{path:path}")
    async def about(path: str) -> JSONResponse:
        parts = _matched(ASKED, path, "GET")
        if parts["metadata"]:
            _check_model(served, parts, _servable(parts))
            return JSONResponse(metadata(served))
        version = parts["version"]
        which = f"version {version}" if version else "any versions"
        _check_model(served, parts, f"Could not find {which} of model {parts['name']}")
        return JSONResponse(status(served))

    @router.post("/{path:path}")
    async def call(path: str, request: Request) -> JSONResponse:
        parts = _matched(CALLED, path, "POST")
        _check_model(served, parts, _servable(parts))
        if parts["verb"].lower() != "predict":
            raise UserError(f"this model's signatures are of predict, not of {parts['verb'].lower()}")
        asked = await served.beside(reader.read, await request.body())
        outputs = await while_connected(request, predict(served, asked))
        return Response(answer(asked, outputs), media_type="application/json")

    return router


def status(served: Served) -> dict:
    """Return what TensorFlow Serving's status interface answers."""
    if served.broken:
        state, code, message = "END", "INTERNAL", BROKEN
    else:
        state, code, message = "AVAILABLE" if served.ready else "LOADING", "OK", ""
    state = {
        "version": str(served.version),
        "state": state,
        "status": {"error_code": code, "error_message": message},
    }
    return {"model_version_status": [state]}


def _matched(pattern: re.Pattern, path: str, method: str) -> dict[str, str | None]:
    found = pattern.fullmatch(path)
    if found is None:
        raise UserError(f"Malformed request: {method} /v1/{path[:200]}")
    return found.groupdict()


def _servable(parts: dict) -> str:
    name, version = parts["name"], parts["version"]
    which = f"Specific({name}, {version})" if version else f"Latest({name})"
    return f"Servable not found for request: {which}"


def _check_model(served: Served, parts: dict, missing: str):
    if parts["label"] is not None:
        raise UserError(f"Unrecognized servable version label: {parts['label']}")
    if parts["name"] != served.name or (parts["version"] and int(parts["version"]) != served.version):
        raise HTTPException(404, missing)
