"""The server's OpenAPI description: all of its routes, and examples that it answers as described."""

import asyncio

import httpx
import msgspec
import pytest
from asking import LIMITS
from tiny_models import BEAM, bridge, pictures, pope, small100

from kzoo.decoding import SearchSettings
from kzoo.serve import Served, create_app
from kzoo.serve.openapi import Alive, Error, forms
from kzoo.serve.rest import Status, signatures

PREDICT = "/v1/models/tiny:predict"


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


@pytest.fixture(params=[pope, bridge, pictures, small100], ids=lambda model: model.__name__)
def served(request):
    translator = request.param()
    translator.search = SearchSettings(BEAM)
    return Served(translator, "tiny", version=3, max_batch=1, limits=LIMITS)


def by_column(body: dict) -> dict:
    (row,) = body["instances"]
    return {"signature_name": body["signature_name"], "inputs": {key: [value] for key, value in row.items()}}


def references(value) -> set[str]:
    """Return what a description refers to."""
    if isinstance(value, list):
        return set().union(*map(references, value))
    if isinstance(value, dict):
        found = {value["$ref"]} if "$ref" in value else set()
        return found.union(*map(references, value.values()))
    return set()


def test_the_description_is_of_the_server(served):
    app = create_app(served)

    async def main():
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(
                transport=httpx.ASGITransport(app), base_url="http://test", timeout=300
            ) as client,
        ):
            found = (await client.get("/openapi.json")).json()
            posted = found["paths"][PREDICT]["post"]["requestBody"]["content"]["application/json"]
            bodies = [example["value"] for example in posted["examples"].values()]
            answers = [
                (
                    body["signature_name"],
                    [await client.post(PREDICT, json=one) for one in (body, by_column(body))],
                )
                for body in bodies
            ]
            gets = {path: await client.get(path) for path, calls in found["paths"].items() if "get" in calls}
            wrong = await client.post(PREDICT, json={"instances": [1]})
            return found, answers, gets, wrong

    found, answers, gets, wrong = asyncio.run(main())
    assert found["openapi"].startswith("3.1.")
    described = {(path, method.upper()) for path, calls in found["paths"].items() for method in calls}
    routes = [route for route in app.routes if route.include_in_schema]
    assert described == {(route.path, method) for route in routes for method in route.methods - {"HEAD"}}
    assert references(found) == {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    named = [call["operationId"] for calls in found["paths"].values() for call in calls.values()]
    assert len(named) == len(set(named))

    schemas = found["components"]["schemas"]
    for name, schema in schemas.items():  # `embed` refuses it
        if "_request_" in name:
            assert ("split_sentences" in schema["properties"]) != name.startswith("embed")

    known = signatures(served)
    assert [name for name, _ in answers] == list(known)
    for name, pair in answers:
        for answer, kind in zip(pair, forms(name, known[name]).answers, strict=True):
            assert answer.status_code == 200, answer.text
            msgspec.json.decode(answer.content, type=kind)
    for path, answer in gets.items():
        assert str(answer.status_code) in found["paths"][path]["get"]["responses"], path
    for path in ("/v1/models/tiny", "/v1/models/tiny/versions/3"):
        msgspec.json.decode(gets[path].content, type=Status)
    assert msgspec.json.decode(gets["/healthz"].content, type=Alive).status
    about = found["paths"]["/v1/models/tiny/metadata"]["get"]["responses"]["200"]["content"][
        "application/json"
    ]
    assert gets["/v1/models/tiny/metadata"].json() == about["example"]
    assert (wrong.status_code, bool(msgspec.json.decode(wrong.content, type=Error).error)) == (400, True)
