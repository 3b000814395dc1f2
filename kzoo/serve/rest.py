"""TensorFlow Serving's REST interface: its signatures, requests, answers and routes.

https://www.tensorflow.org/tfx/serving/api_rest
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
from msgspec import UNSET, Meta, Raw, Struct
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from kzoo.errors import UserError
from kzoo.serve.inputs import Limits, features, image_kind
from kzoo.serve.served import BROKEN, Served
from kzoo.text.hypotheses import Hypothesis

# Placeholder for a hypothesis that the search did not find, as in a SavedModel.
NONE = Hypothesis("", -1e9)
# Signatures whose answers say which translations are doubtful: a prefix changes the scores.
MARKED = ("serving_default", "n_best")
# Maximum sentences that one call embeds, so that other requests wait less.
EMBEDDED = 16


@dataclass(frozen=True)
class Tensor:
    """An input or output: its TensorFlow type, and its shape, with -1 for any size."""

    dtype: str
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Signature:
    """A way to call a model."""

    inputs: dict[str, Tensor]
    outputs: dict[str, Tensor]


LANGUAGES = ("source_language", "target_language")
STRINGS, NUMBERS = Tensor("DT_STRING", (-1,)), Tensor("DT_FLOAT", (-1,))


def signatures(served: Served) -> dict[str, Signature]:
    """Return the signatures, by name; those of the SavedModel that `export` writes."""
    inputs = {"text": STRINGS} | dict.fromkeys(_languages(served.translator), STRINGS)
    shape = served.translator.image_shape
    if kind := image_kind(shape):
        inputs["image"] = STRINGS if kind == "picture" else Tensor("DT_FLOAT", (-1, *shape))
    K = served.settings.beam_size
    several = {"translation": Tensor("DT_STRING", (-1, K)), "score": Tensor("DT_FLOAT", (-1, K))}
    found = {
        "serving_default": Signature(inputs, {"translation": STRINGS, "score": NUMBERS}),
        "n_best": Signature(inputs, several),
        "prefixed": Signature({**inputs, "prefix": STRINGS}, several),
    }
    if served.translator.embeds:
        k, D = served.translator.backbone.matrix_shape
        embedding = {"embedding": Tensor("DT_FLOAT", (-1, k * D))}
        found["embed"] = Signature({"text": STRINGS, "language": STRINGS}, embedding)
    return found


def _languages(translator) -> list[str]:
    """Return the languages that a request must name: those that the model takes and has no default for."""
    if translator.multilingual:
        return [*LANGUAGES]
    if not translator.source_languages:
        return []
    named = {translator.source_tokenizer.names, translator.target_tokenizer.names}
    own = zip(("source", "target"), LANGUAGES, translator.languages, strict=True)
    return [key for side, key, code in own if side in named and code is None]


class Body(Struct, forbid_unknown_fields=True):
    """A request's body. Its rows or columns are decoded later, with the types of its signature."""

    signature_name: str = ""
    split_sentences: bool = False  # not in TensorFlow Serving
    instances: Raw = UNSET
    inputs: Raw = UNSET


class Bytes(Struct, forbid_unknown_fields=True):
    """Bytes in TensorFlow Serving's JSON."""

    b64: bytes


BODY = msgspec.json.Decoder(Body)


@dataclass(frozen=True)
class PredictRequest:
    """A request, decoded.

    Args:
        signature: its name.
        columns: the values of each input.
        by_row: bool. Whether the request, and therefore the response, is by row.
        split_sentences: bool. Whether to translate each sentence of a text by itself.
    """

    signature: str
    columns: dict[str, list]
    by_row: bool
    split_sentences: bool


class RequestReader:
    """Reads the requests to a model with known signatures."""

    def __init__(self, known: dict[str, Signature], limits: Limits):
        self._known, self._limits = known, limits
        self._rows = {name: msgspec.json.Decoder(rows_type(name, one)) for name, one in known.items()}
        self._columns = {name: msgspec.json.Decoder(columns_type(name, one)) for name, one in known.items()}

    def read(self, body: bytes) -> PredictRequest:
        """Return a request, decoded from its body.

        Raises:
            UserError: it is not a valid request.
        """
        asked = decoded(BODY, body, f"the body (of {', '.join(Body.__struct_fields__)})")
        name = asked.signature_name or "serving_default"
        if name not in self._known:
            known = ", ".join(self._known)
            raise UserError(
                f'Serving signature name: "{name[:80]}" not found in signature def; known: {known}'
            )
        if (asked.instances is UNSET) == (asked.inputs is UNSET):
            raise UserError('give either "instances", a list of rows, or "inputs", a list for each input')
        inputs = self._known[name].inputs
        if by_row := asked.inputs is UNSET:
            rows = decoded(self._rows[name], asked.instances, f"instances (of {', '.join(inputs)})")
            # A row is an object, or the text itself if that is the only input.
            columns = {key: [getattr(row, key, row) for row in rows] for key in inputs}
            named = {key: [getattr(row, key, None) for row in rows] for key in _optional(inputs)}
            columns |= {key: codes for key, codes in named.items() if any(codes)}
        else:
            found = decoded(self._columns[name], asked.inputs, f"inputs (of {', '.join(inputs)})")
            columns = {"text": found} if isinstance(found, list) else msgspec.structs.asdict(found)
            columns = {key: values for key, values in columns.items() if values is not None}
        counts = {key: len(values) for key, values in columns.items()}
        self._limits.check_texts(columns["text"])
        self._limits.check_texts(columns.get("prefix", []), "prefix")
        if len(set(counts.values())) > 1:
            each = ", ".join(f"{count:,} of {key}" for key, count in counts.items())
            raise UserError(f"all inputs must have a row for each text: there are {each}")
        if inputs.get("image") == STRINGS:  # pictures
            columns["image"] = [value.b64 for value in columns["image"]]
        elif "image" in inputs:  # as arrays, because many numbers would take gigabytes as Python objects
            columns["image"] = [features(image, number) for number, image in enumerate(columns["image"], 1)]
        return PredictRequest(name, columns, by_row, asked.split_sentences)


def rows_type(name: str, signature: Signature) -> type:
    """Return the type of "instances", of rows that are named after their signature."""
    types = [(key, value_type(key, tensor)) for key, tensor in signature.inputs.items()]
    optional = [(key, str | None, None) for key in _optional(signature.inputs)]
    row = msgspec.defstruct(f"{name}_row", [*types, *optional], forbid_unknown_fields=True)
    return Annotated[list[row if len(types) > 1 else str | row], Meta(min_length=1)]


def columns_type(name: str, signature: Signature) -> type:
    """Return the type of "inputs"."""
    types = [(key, list[value_type(key, tensor)]) for key, tensor in signature.inputs.items()]
    optional = [(key, list[str] | None, None) for key in _optional(signature.inputs)]
    columns = msgspec.defstruct(f"{name}_columns", [*types, *optional], forbid_unknown_fields=True)
    return columns if len(types) > 1 else columns | list[str]


def _optional(inputs: dict[str, Tensor]) -> list[str]:
    """Return the languages that a request may name although the signature does not ask for them."""
    return [] if "language" in inputs else [key for key in LANGUAGES if key not in inputs]


def value_type(key: str, tensor: Tensor) -> type:
    """Return the type of an input's or output's values."""
    if tensor.dtype == "DT_STRING" and key == "image":
        return Bytes
    kind = {"DT_STRING": str, "DT_FLOAT": float}[tensor.dtype]
    for _ in tensor.shape[1:]:
        kind = list[kind]
    return kind


def decoded(decoder: msgspec.json.Decoder, content: bytes | Raw, called: str) -> Any:
    """Decode JSON to the decoder's type.

    Raises:
        UserError: it is not JSON, or of another type.
    """
    try:
        return decoder.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UserError(f"{called}: {error}") from None


def answer(request: PredictRequest, outputs: dict[str, list], lacking: Sequence[str] = ()) -> bytes:
    """Return outputs as JSON, by row or by column like the request; a single output has no name.

    If the vocabulary lacks characters, `"unknown_characters"` has `lacking`, those of each text.
    """
    notes = {"unknown_characters": lacking} if any(lacking) else {}  # not in TensorFlow Serving
    single = next(iter(outputs.values())) if len(outputs) == 1 else None
    if not request.by_row:
        return msgspec.json.encode({"outputs": outputs if single is None else single, **notes})
    rows = [dict(zip(outputs, row, strict=True)) for row in zip(*outputs.values(), strict=True)]
    return msgspec.json.encode({"predictions": rows if single is None else single, **notes})


def model_routes(models: Sequence[Served]) -> list[Route]:
    """Return the routes below /v1: each model's, and one that answers 404 and names the models."""

    async def missing(request: Request) -> Response:
        asked = f"{request.method} {request.scope['path'][:200]}"
        known = "; ".join(
            f"GET {address(one)} and POST {address(one)}:predict, version {one.version}" for one in models
        )
        raise HTTPException(404, f"not found: {asked}; this server has {known}")

    return [
        *(route for served in models for route in routes_of(served)),
        Route("/v1/{path:path}", missing, methods=["GET", "POST"], include_in_schema=False),
    ]


def address(served: Served) -> str:
    """Return the path of a model."""
    return f"/v1/models/{served.name}"


def routes_of(served: Served) -> list[Route]:
    """Return a model's routes."""
    reader = RequestReader(signatures(served), served.limits)

    async def predict(request: Request) -> Response:
        body = await request.body()
        asked = await served.in_thread(reader.read, body, size=len(body))
        found = await (embed if asked.signature == "embed" else translate)(served, asked)
        return Response(answer(asked, *found), media_type="application/json")

    async def state(_) -> Response:
        return JSONResponse(msgspec.to_builtins(status(served)))

    async def about(_) -> Response:
        return JSONResponse(metadata(served))

    calls = ((":predict", predict, "POST"), ("", state, "GET"), ("/metadata", about, "GET"))
    return [
        Route(f"{address(served)}{version}{end}", call, methods=[method])
        for end, call, method in calls
        for version in ("", f"/versions/{served.version}")
    ]


async def translate(served: Served, asked: PredictRequest) -> tuple[dict[str, list], list[str]]:
    """Return a signature's outputs, each text's best translation or all of the beam; and `Prepared.lacking`.

    For signatures in `MARKED`, also whether each text's best translation is doubtful.

    Raises:
        UserError: an invalid input.
        Busy: too many rows are waiting.
    """
    best = asked.signature == "serving_default"
    n = 1 if best else served.settings.beam_size
    texts, *others = map(asked.columns.get, ("text", "image", "prefix"))
    languages = (asked.columns.get(key) or [None] * len(texts) for key in LANGUAGES)
    directions = list(map(served.translator.direction, *languages))
    prepared = await served.prepared(texts, directions, *others, split_sentences=asked.split_sentences)
    found = await served.search(prepared, n)
    full = [[*hypotheses, *[NONE] * (n - len(hypotheses))] for hypotheses in prepared.split.join(found)]
    outputs = {
        "translation": [[hypothesis.text for hypothesis in row] for row in full],
        "score": [[hypothesis.score for hypothesis in row] for row in full],
    }
    if best:
        outputs = {key: [row[0] for row in rows] for key, rows in outputs.items()}
    if asked.signature in MARKED:
        outputs["doubtful"] = served.doubtful(prepared, found)  # not in TensorFlow Serving
    return outputs, prepared.lacking


async def embed(served: Served, asked: PredictRequest) -> tuple[dict[str, list], list[str]]:
    """Return the embedding of each text, and `Prepared.lacking`.

    The errors are those of `translate`, and `split_sentences`.
    """
    if asked.split_sentences:
        raise UserError("embed embeds whole texts: remove split_sentences")
    texts = asked.columns["text"]
    languages = list(map(served.translator.code_of, asked.columns["language"]))
    directions = [(language, language) for language in languages]
    prepared = await served.prepared(texts, directions, unknown="translate")
    tokens, vectors = prepared.rows.tokens, []
    with served.batcher.reserved(len(texts)):
        for start in range(0, len(texts), EMBEDDED):
            some = slice(start, start + EMBEDDED)
            vectors += await served.batcher.run(
                _embeddings, served.translator, tokens[some], languages[some], rows=0
            )
    served.metrics.sentences.inc(len(texts))
    return {"embedding": vectors}, prepared.lacking


def _embeddings(translator, tokens: list[list[int]], languages: list[str]) -> list:
    k, D = translator.backbone.matrix_shape
    vectors = np.zeros((len(tokens), k * D), "float32")
    for language in set(languages):
        mine = [i for i, code in enumerate(languages) if code == language]
        vectors[mine] = translator.embed_tokens([tokens[i] for i in mine], language)
    # As JSON, because many vectors would take gigabytes as Python objects.
    return [msgspec.Raw(msgspec.json.encode(vector.tolist())) for vector in vectors]


class Reason(Struct):
    """Why a model cannot be used."""

    error_code: Literal["OK", "INTERNAL"] = "OK"
    error_message: str = ""


class VersionStatus(Struct):
    """The state of a model's version."""

    version: str
    state: Literal["LOADING", "AVAILABLE", "END"]
    status: Reason


class Status(Struct):
    """The response of TensorFlow Serving's status API."""

    model_version_status: list[VersionStatus]


def status(served: Served) -> Status:
    """Return the state of the model's only version."""
    if served.readiness == BROKEN:
        found = VersionStatus(str(served.version), "END", Reason("INTERNAL", BROKEN))
    else:
        found = VersionStatus(str(served.version), "LOADING" if served.readiness else "AVAILABLE", Reason())
    return Status([found])


def metadata(served: Served) -> dict:
    """Return the response of TensorFlow Serving's metadata API, with the engine."""
    described = {name: _described(name, signature) for name, signature in signatures(served).items()}
    return {
        "model_spec": {"name": served.name, "signature_name": "", "version": str(served.version)},
        "metadata": {"signature_def": {"signature_def": described}, "engine": served.engine},
    }


def _described(name: str, signature: Signature) -> dict:
    return {
        "inputs": {key: _tensor_info(f"{name}_{key}:0", value) for key, value in signature.inputs.items()},
        # In a SavedModel, one operation has all outputs, sorted by name.
        "outputs": {
            key: _tensor_info(f"{name}:{number}", signature.outputs[key])
            for number, key in enumerate(sorted(signature.outputs))
        },
        "method_name": "tensorflow/serving/predict",
        "defaults": {},
    }


def _tensor_info(name: str, tensor: Tensor) -> dict:
    dimensions = [{"size": str(size), "name": ""} for size in tensor.shape]
    return {
        "dtype": tensor.dtype,
        "tensor_shape": {"dim": dimensions, "unknown_rank": False},
        "name": name,
    }
