"""The server's description at /openapi.json: its routes, with the types of requests and answers.

https://spec.openapis.org/oas/v3.1.1.html
"""

import base64
import io
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct
from PIL import Image
from starlette.responses import Response
from starlette.routing import Route

from kzoo.serve.inputs import image_kind
from kzoo.serve.messages import (
    FORMS,
    Detected,
    DetectQuestion,
    FileQuestion,
    Health,
    Language,
    Question,
    Settings,
    TranslatedFile,
    Translation,
    Translations,
)
from kzoo.serve.rest import (
    MARKED,
    Signature,
    Status,
    address,
    columns_type,
    metadata,
    rows_type,
    signatures,
    value_type,
)
from kzoo.serve.searches import a_direction
from kzoo.serve.served import Served

PATH = "/openapi.json"
ABOUT = (
    "A translation model, served by kzoo with TensorFlow Serving's REST interface and LibreTranslate's API."
)
MEANINGS = {
    "translation": "The best translation; with n_best and prefixed, all of the beam, best first.",
    "score": "log P of the translation with the length penalty: closer to zero is more certain.",
    "doubtful": "Whether the best translation, with split_sentences that of any sentence, scores lower than "
    "95 % of the validation sentences; null if that is unknown.",
    "embedding": "The rows of the attention bridge, one after the other.",
}
UNKNOWN = "Each text's characters that the vocabulary lacks; left out if no text has any."
SPLIT = "Whether to translate each sentence of a text by itself."
ERRORS = {
    "4XX": "The request is invalid (400, 413, 415), too slow (408), for another model (404), or from another "
    "site's page (403); a key is missing or wrong (401).",
    "500": "The model failed, or a score is not finite.",
    "503": "The server is busy, is stopping, or cannot translate.",
}


class Error(Struct):
    """The answer to a request that fails."""

    error: str


class Alive(Struct):
    """The answer of a probe."""

    status: str


@dataclass(frozen=True)
class Forms:
    """The types of a signature's requests and answers, by row and by column."""

    requests: tuple[type, type]
    answers: tuple[type, type]


def openapi_route(models: Sequence[Served]) -> Route:
    """Return the route of the description."""
    content = msgspec.json.encode(description(models))
    return Route(PATH, Response(content, media_type="application/json"), methods=["GET"])


def forms(name: str, signature: Signature, model: str = "") -> Forms:
    """Return the types of the requests to a signature, and of its answers; `model` begins their names."""
    default = name == "serving_default"
    named = ("signature_name", Literal["", name], "") if default else ("signature_name", Literal[name])
    split = [] if name == "embed" else [("split_sentences", Annotated[bool, Meta(description=SPLIT)], False)]
    requests = tuple(
        msgspec.defstruct(
            f"{model}{name}_request_by_{form}",
            [(key, type_of), named, *split],
            forbid_unknown_fields=True,
            kw_only=True,
        )
        for form, key, type_of in (
            ("row", "instances", rows_type(f"{model}{name}", signature)),
            ("column", "inputs", columns_type(f"{model}{name}", signature)),
        )
    )
    types = {key: value_type(key, tensor) for key, tensor in signature.outputs.items()}
    if name in MARKED:
        types["doubtful"] = bool | None
    types = {key: Annotated[kind, Meta(description=MEANINGS[key])] for key, kind in types.items()}
    if len(types) == 1:
        (row,) = types.values()
        columns = list[row]
    else:
        row = msgspec.defstruct(f"{model}{name}_answer", list(types.items()), forbid_unknown_fields=True)
        columns = [(key, list[kind]) for key, kind in types.items()]
        columns = msgspec.defstruct(f"{model}{name}_answer_columns", columns, forbid_unknown_fields=True)
    answers = (("row", "predictions", list[row]), ("column", "outputs", columns))
    unknown = (
        "unknown_characters",
        Annotated[list[str], Meta(description=UNKNOWN)],
        msgspec.field(default=[]),
    )
    return Forms(
        requests,
        tuple(
            msgspec.defstruct(
                f"{model}{name}_answer_by_{form}", [(key, kind), unknown], forbid_unknown_fields=True
            )
            for form, key, kind in answers
        ),
    )


def description(models: Sequence[Served]) -> dict:
    """Return the OpenAPI description of served presets."""
    found = [
        [
            forms(name, signature, f"{served.name}_" if len(models) > 1 else "")
            for name, signature in signatures(served).items()
        ]
        for served in models
    ]
    libre = [Question, Translation, Translations, DetectQuestion, list[Detected], list[Language], Health]
    libre += [FileQuestion, TranslatedFile, Settings]
    of_models = [kind for some in found for one in some for kind in (*one.requests, *one.answers)]
    types = [*of_models, *libre, Status, Alive, Error]
    schemas, components = msgspec.json.schema_components(types, ref_template="#/components/schemas/{name}")
    schema_of = dict(zip(types, schemas, strict=True))

    def answered(schema: dict, meaning: str, **more) -> dict:
        return {"200": {"description": meaning, "content": {"application/json": {"schema": schema, **more}}}}

    def errors(*statuses: str) -> dict:
        content = {"application/json": {"schema": schema_of[Error]}}
        return {status: {"description": ERRORS[status], "content": content} for status in statuses}

    def call(summary: str, responses: dict, **more) -> dict:
        return {"summary": summary, **more, "responses": responses}

    state = answered(schema_of[Status], "The version and its state.")
    paths = {}
    for number, (served, some) in enumerate(zip(models, found, strict=True)):
        requests, answers = (
            [schema_of[kind] for one in some for kind in getattr(one, side)]
            for side in ("requests", "answers")
        )
        body = {"schema": {"anyOf": requests}, "examples": examples(served)}
        predictions = answered({"anyOf": answers}, "By row or by column, as asked.")
        about = answered(
            {"type": "object"}, "As in TensorFlow Serving, with the engine.", example=metadata(served)
        )
        model, own = address(served), str(number + 1) if number else ""  # identifiers of calls are unique
        for version, end in (("", own), (f"/versions/{served.version}", f"OfVersion{own}")):
            paths |= {
                f"{model}{version}:predict": {
                    "post": call(
                        "Translate, or embed",
                        predictions | errors(*ERRORS),
                        operationId=f"predict{end}",
                        requestBody={"required": True, "content": {"application/json": body}},
                    )
                },
                f"{model}{version}": {"get": call("The model's state", state, operationId=f"state{end}")},
                f"{model}{version}/metadata": {
                    "get": call("The model's signatures", about, operationId=f"metadata{end}")
                },
            }
    for path, question, kinds_of_answer, summary in (
        ("/translate", Question, (Translation, Translations), "Translate, as LibreTranslate"),
        ("/translate_file", FileQuestion, (TranslatedFile,), "Translate a document, as LibreTranslate"),
        ("/detect", DetectQuestion, (list[Detected],), "Identify a language, as LibreTranslate"),
    ):
        known = FORMS[1:] if question is FileQuestion else ("application/json", *FORMS)
        kinds = dict.fromkeys(known, {"schema": schema_of[question]})
        posted = {"required": True, "content": kinds}
        schema = {"anyOf": [schema_of[kind] for kind in kinds_of_answer]}
        responses = answered(schema, "As LibreTranslate.") | errors(*ERRORS)
        paths[path] = {"post": call(summary, responses, operationId=path[1:], requestBody=posted)}
    for path, answer, summary in (
        ("/frontend/settings", Settings, "Limits and formats, as LibreTranslate"),
        ("/languages", list[Language], "The languages served, as LibreTranslate"),
        ("/health", Health, "Whether the server answers, as LibreTranslate"),
    ):
        responses = answered(schema_of[answer], "As LibreTranslate.")
        paths[path] = {"get": call(summary, responses, operationId=path[1:].replace("/", "_"))}
    ok = answered(schema_of[Alive], "Yes.")
    text = {"200": {"description": "In Prometheus's format.", "content": {"text/plain": {}}}}
    paths |= {
        "/healthz": {"get": call("Whether the server lives", ok | errors("503"), operationId="healthz")},
        "/readyz": {"get": call("Whether it is prepared", ok | errors("503"), operationId="readyz")},
        "/metrics": {"get": call("Metrics", text, operationId="metrics")},
        PATH: {
            "get": call("This description", answered({"type": "object"}, "OpenAPI."), operationId="openapi")
        },
    }
    return {
        "openapi": "3.1.0",
        "info": {
            "title": ", ".join(served.name for served in models),
            "version": str(models[0].version),
            "description": ABOUT,
        },
        "paths": paths,
        "components": {"schemas": components},
    }


def examples(served: Served) -> dict:
    """Return an example of a request by row for each signature; none for features, of too many numbers."""
    translator = served.translator
    shape = translator.image_shape
    if image_kind(shape) == "features":
        return {}
    source, target = a_direction(translator)
    values = {
        "text": "A dog runs.",
        "source_language": source,
        "target_language": target,
        "language": source,
    }
    values["prefix"] = ""
    if shape:
        file = io.BytesIO()
        Image.new("RGB", (1, 1)).save(file, "PNG")
        values["image"] = {"b64": base64.b64encode(file.getvalue()).decode()}
    return {
        name: {
            "value": {"signature_name": name, "instances": [{key: values[key] for key in signature.inputs}]}
        }
        for name, signature in signatures(served).items()
    }
