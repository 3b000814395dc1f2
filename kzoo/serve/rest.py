"""TensorFlow Serving's REST interface: https://www.tensorflow.org/tfx/serving/api_rest"""

import re

import msgspec
import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kzoo.errors import UserError
from kzoo.serve import requests
from kzoo.serve.limits import check_language
from kzoo.serve.requests import RequestReader, answer, metadata, signatures
from kzoo.serve.served import BROKEN, Served
from kzoo.text.texts import Hypothesis

MODEL = r"(?i)models/(?P<name>[^/:]+)(?:/versions/(?P<version>[0-9]{1,18})|/labels/(?P<label>[^/:]+))?"
ASKED = re.compile(MODEL + r"(?P<metadata>/metadata)?")
CALLED = re.compile(MODEL + r":(?P<verb>classify|regress|predict)")
# The placeholder for a hypothesis that the search did not find, as in a SavedModel.
NONE = Hypothesis("", -1e9)
# Sentences embedded in one call, after which other requests have their turn.
EMBEDDED = 16


def model_routes(served: Served) -> list[Route]:
    """Return the routes below /v1 of the one model that is served, in its one version."""
    reader = RequestReader(signatures(served), served.limits)

    async def about(request: Request) -> Response:
        parts = _matched(ASKED, request)
        if parts["metadata"]:
            _check_model(served, parts, _servable(served, parts))
            return JSONResponse(metadata(served))
        version = parts["version"]
        which = f"version {version}" if version else "any versions"
        _check_model(served, parts, f"Could not find {which} of model {parts['name']}")
        return JSONResponse(status(served))

    async def call(request: Request) -> Response:
        parts = _matched(CALLED, request)
        _check_model(served, parts, _servable(served, parts))
        if parts["verb"].lower() != "predict":
            raise UserError(f"this model's signatures are of predict, not of {parts['verb'].lower()}")
        body = await request.body()
        asked = await served.beside(reader.read, body, size=len(body))
        outputs = await (embed if asked.signature == "embed" else translate)(served, asked)
        return Response(answer(asked, outputs), media_type="application/json")

    path = "/v1/{path:path}"
    return [Route(path, call, methods=["POST"]), Route(path, about)]


async def translate(served: Served, asked: requests.Request) -> dict[str, list]:
    """Return the best translation of each text, or as many as the beam has, by a signature's outputs.

    Raises:
        UserError: an input that cannot be used.
        Busy: too many rows are waiting.
    """
    best = asked.signature == "serving_default"
    n = 1 if best else served.settings.beam_size
    texts, *others = map(asked.columns.get, ("text", "source_language", "target_language", "image", "prefix"))
    found = await served.n_best(texts, n, *others, split_sentences=asked.split_sentences)
    full = [[*hypotheses, *[NONE] * (n - len(hypotheses))] for hypotheses in found]
    outputs = {
        "translation": [[hypothesis.text for hypothesis in row] for row in full],
        "score": [[hypothesis.score for hypothesis in row] for row in full],
    }
    return {key: [row[0] for row in rows] for key, rows in outputs.items()} if best else outputs


async def embed(served: Served, asked: requests.Request) -> dict[str, list]:
    """Return the embedding of each text, in its language; the errors are those of `translate`."""
    texts, languages = asked.columns["text"], asked.columns["language"]
    for code in set(languages):
        check_language(code, served.translator.languages)
    await served.check_texts(texts, languages)
    vectors = []
    for start in range(0, len(texts), EMBEDDED):
        some = slice(start, start + EMBEDDED)
        called = served.translator, texts[some], languages[some]
        vectors += await served.run(_embeddings, *called, rows=len(texts[some]))
    served.metrics.sentences.inc(len(texts))
    return {"embedding": vectors}


def _embeddings(translator, texts: list[str], languages: list[str]) -> list:
    k, D = translator.backbone.matrix_shape
    vectors = np.zeros((len(texts), k * D), "float32")
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        vectors[mine] = translator.embed([texts[i] for i in mine], language)
    # In the model's thread: as Python's objects, the numbers of many would take gigabytes.
    return [msgspec.Raw(msgspec.json.encode(vector.tolist())) for vector in vectors]


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


def _matched(pattern: re.Pattern, request: Request) -> dict[str, str | None]:
    path = request.path_params["path"]
    found = pattern.fullmatch(path)
    if found is None:
        raise UserError(f"Malformed request: {request.method} /v1/{path[:200]}")
    return found.groupdict()


def _servable(served: Served, parts: dict) -> str:
    name, version = parts["name"], parts["version"]
    which = f"Specific({name}, {version})" if version else f"Latest({name})"
    return f"Servable not found for request: {which}; this server has {served.name}, version {served.version}"


def _check_model(served: Served, parts: dict, missing: str):
    if parts["label"] is not None:
        raise UserError(f"Unrecognized servable version label: {parts['label']}")
    if parts["name"] != served.name or (parts["version"] and int(parts["version"]) != served.version):
        raise HTTPException(404, missing)
