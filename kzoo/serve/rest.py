"""TensorFlow Serving's REST interface: https://www.tensorflow.org/tfx/serving/api_rest"""

import msgspec
import numpy as np
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kzoo.serve.requests import PredictRequest, RequestReader, answer, metadata, signatures
from kzoo.serve.served import BROKEN, Served
from kzoo.text.texts import Hypothesis

# Stands for each hypothesis that the search did not find, as in a SavedModel.
NONE = Hypothesis("", -1e9)
# Maximum sentences that one call embeds, so that other requests wait less.
EMBEDDED = 16


def model_routes(served: Served) -> list[Route]:
    """Return the routes below /v1: the model's, and one that answers 404 and names the model."""
    reader = RequestReader(signatures(served), served.limits)

    async def predict(request: Request) -> Response:
        body = await request.body()
        asked = await served.beside(reader.read, body, size=len(body))
        outputs = await (embed if asked.signature == "embed" else translate)(served, asked)
        return Response(answer(asked, outputs), media_type="application/json")

    async def state(_) -> Response:
        return JSONResponse(status(served))

    async def about(_) -> Response:
        return JSONResponse(metadata(served))

    async def missing(request: Request) -> Response:
        asked = f"{request.method} {request.scope['path'][:200]}"
        known = f"GET {model} and POST {model}:predict, version {served.version}"
        raise HTTPException(404, f"not found: {asked}; this server has {known}")

    model = f"/v1/models/{served.name}"
    calls = ((":predict", predict, "POST"), ("", state, "GET"), ("/metadata", about, "GET"))
    routes = [
        Route(f"{model}{version}{end}", call, methods=[method])
        for end, call, method in calls
        for version in ("", f"/versions/{served.version}")
    ]
    return [*routes, Route("/v1/{path:path}", missing, methods=["GET", "POST"])]


async def translate(served: Served, asked: PredictRequest) -> dict[str, list]:
    """Return a signature's outputs: each text's best translation, or all translations of the beam.

    Raises:
        UserError: an invalid input.
        Busy: too many rows are waiting.
    """
    best = asked.signature == "serving_default"
    n = 1 if best else served.settings.beam_size
    texts, *others = map(asked.columns.get, ("text", "source_language", "target_language", "image", "prefix"))
    prepared = await served.prepared(texts, *others, split_sentences=asked.split_sentences)
    found = prepared.joined(await served.search(prepared, n))
    full = [[*hypotheses, *[NONE] * (n - len(hypotheses))] for hypotheses in found]
    outputs = {
        "translation": [[hypothesis.text for hypothesis in row] for row in full],
        "score": [[hypothesis.score for hypothesis in row] for row in full],
    }
    return {key: [row[0] for row in rows] for key, rows in outputs.items()} if best else outputs


async def embed(served: Served, asked: PredictRequest) -> dict[str, list]:
    """Return the embedding of each text; the errors are those of `translate`."""
    texts, languages = asked.columns["text"], asked.columns["language"]
    await served.prepared(texts, languages, languages)  # checks them
    vectors = []
    for start in range(0, len(texts), EMBEDDED):
        some = slice(start, start + EMBEDDED)
        called = served.translator, texts[some], languages[some]
        vectors += await served.batcher.run(_embeddings, *called, rows=len(texts[some]))
    served.metrics.sentences.inc(len(texts))
    return {"embedding": vectors}


def _embeddings(translator, texts: list[str], languages: list[str]) -> list:
    k, D = translator.backbone.matrix_shape
    vectors = np.zeros((len(texts), k * D), "float32")
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        vectors[mine] = translator.embed([texts[i] for i in mine], language)
    # As JSON, because many vectors would take gigabytes as Python objects.
    return [msgspec.Raw(msgspec.json.encode(vector.tolist())) for vector in vectors]


def status(served: Served) -> dict:
    """Return the answer of TensorFlow Serving's status interface."""
    state, code, message = "LOADING" if served.readiness else "AVAILABLE", "OK", ""
    if served.readiness == BROKEN:
        state, code, message = "END", "INTERNAL", BROKEN
    reason = {"error_code": code, "error_message": message}
    return {"model_version_status": [{"version": str(served.version), "state": state, "status": reason}]}
