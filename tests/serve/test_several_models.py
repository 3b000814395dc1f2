"""Several presets in one server, and one table of directions for LibreTranslate's API."""

import hashlib

import msgspec
import pytest
from asking import answers
from test_openapi import references
from tiny_models import BEAM, bridge, pictures, pope

from kzoo.decoding import SearchSettings
from kzoo.serve import Keys, Served, create_app
from kzoo.serve.metrics import Metrics
from kzoo.serve.server import startup_lines

TEXTS = ["two dogs.", "ein mann."]


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


@pytest.fixture(scope="module")
def models():
    """English to German alone, then English, German and French, then one that reads pictures."""
    return {"first": pope(), "second": bridge(), "third": pictures()}


def ask(models, *requests):
    metrics, served = Metrics(), []
    for name, translator in models.items():
        translator.search = SearchSettings(BEAM)
        served.append(Served(translator, name, metrics=metrics))
    return answers(create_app(served), requests)


def libre(source, target, **more):
    return "POST", "/translate", {"json": {"q": TEXTS, "source": source, "target": target, **more}}


def test_the_first_preset_with_a_direction_translates_it(models):
    pairs = [("en", "de"), ("de", "fr"), ("fr", "en")]
    found = ask(models, *(libre(*pair) for pair in pairs), ("GET", "/languages", {}))
    first, second = models["first"], models["second"]
    expected = [
        first.translate(TEXTS, split_sentences=True),
        *(second.translate(TEXTS, *pair, split_sentences=True) for pair in pairs[1:]),
    ]
    assert [answer.json()["translatedText"] for answer in found[:3]] == expected
    assert {one["code"]: one["targets"] for one in found[3].json()} == dict.fromkeys(
        ("en", "fr", "de"), ["de", "en", "fr"]
    )


def test_the_texts_of_one_request_may_be_of_several_presets(models):
    pytest.importorskip("py3langid")
    texts = ["two dogs with.", "zwei hunde mit."]
    (found,) = ask(models, libre("auto", "fr", q=texts))
    assert [one["language"] for one in found.json()["detectedLanguage"]] == ["en", "de"]
    found, html = ask(
        models, libre("auto", "de", q=texts), libre("en", "de", q="<p>two <b>dogs</b>.</p>", format="html")
    )
    assert found.json()["translatedText"] == [
        *models["first"].translate(texts[:1], split_sentences=True),
        texts[1],
    ]
    assert html.json()["translatedText"].startswith("<p>")


def test_a_text_of_a_list_that_cannot_be_told_is_in_the_language_of_the_list(models):
    """LibreTranslate takes one language for all texts of a list."""
    pytest.importorskip("py3langid")
    french = pope.__wrapped__()
    french.source_language, french.target_language = "fr", "en"
    both = {"en-de": models["first"], "fr-en": french}
    dogs, men, other = "two dogs with.", "man", "où sont-ils?"
    mixed, untold, alone = ask(
        both,
        libre("auto", "de", q=[dogs, men, other]),
        libre("auto", "de", q=men),
        libre("auto", "de", q=other),
    )
    expected = models["first"].translate([dogs, men, other], split_sentences=True)
    assert mixed.json()["translatedText"] == expected
    languages = [tuple(one.values()) for one in mixed.json()["detectedLanguage"]]
    assert languages == [(98.0, "en"), (33.0, "en"), (0.0, "en")]
    assert untold.json()["translatedText"] == expected[1]
    assert untold.json()["detectedLanguage"] == {"confidence": 33.0, "language": "en"}
    assert alone.status_code == 400 and "fr" in alone.json()["error"]


def test_a_direction_that_none_has_is_refused_with_those_known(models):
    target, source = ask(models, libre("en", "nl"), libre("nl", "en"))
    assert target.status_code == source.status_code == 400
    for answer, known in ((target, "en to de, en, fr"), (source, "from de, en, fr")):
        assert "nl" in answer.json()["error"] and answer.json()["error"].endswith(known)


def test_each_model_has_its_addresses_and_page_and_all_are_counted(models):
    rows = {"instances": ["a man."]}
    first, second, missing, ready, root, page, about, metrics, described = ask(
        models,
        ("POST", "/v1/models/first:predict", {"json": rows}),
        (
            "POST",
            "/v1/models/second:predict",
            {"json": {"instances": [{"text": "a man.", "source_language": "en", "target_language": "fr"}]}},
        ),
        ("GET", "/v1/models/fourth", {}),
        ("GET", "/readyz", {}),
        ("GET", "/", {}),
        ("GET", "/pages/second/", {}),
        ("GET", "/pages/second/page/about", {}),
        ("GET", "/metrics", {}),
        ("GET", "/openapi.json", {}),
    )
    assert first.json()["predictions"][0]["translation"] == models["first"].translate(["a man."])[0]
    assert (
        second.json()["predictions"][0]["translation"]
        == models["second"].translate(["a man."], "en", "fr")[0]
    )
    assert missing.status_code == 404
    assert all(f"/v1/models/{name}" in missing.json()["error"] for name in models)
    assert ready.status_code in (200, 503)
    assert root.text == page.text and "<html" in page.text
    assert (about.json()["name"], about.json()["models"]) == ("second", [*models])
    assert "kzoo_sentences_total 2.0" in metrics.text
    assert "kzoo_queue_sentences 0.0" in metrics.text
    found = msgspec.json.decode(described.content)
    assert {f"/v1/models/{name}:predict" for name in models} <= set(found["paths"])
    assert references(found) == {f"#/components/schemas/{name}" for name in found["components"]["schemas"]}
    calls = [call["operationId"] for methods in found["paths"].values() for call in methods.values()]
    assert len(calls) == len(set(calls))


@pytest.mark.parametrize("keys", [None, Keys([hashlib.sha256(b"key").digest()])])
def test_the_first_lines_name_each_model_its_directions_and_an_address_of_its_own(models, keys):
    served = [Served(model, name, metrics=Metrics()) for name, model in models.items()]
    lines = [line.partition(": ") for line in startup_lines(served, "http://test/", keys)]
    assert [name for name, *_ in lines] == [*models]
    assert "en to de" in lines[0][2] and "6 directions" in lines[1][2] and "de, en, fr" in lines[1][2]
    pages = [rest.split(",")[0].removeprefix("http://test") for *_, rest in lines]
    assert len(set(pages)) == len(models)
    headers = {"Authorization": "Bearer key"}
    found = answers(create_app(served, keys=keys), [("GET", page, {"headers": headers}) for page in pages])
    assert [answer.status_code for answer in found] == [200] * len(models)
