"""TensorFlow Serving's interface over HTTP: the strings of `translate`, a clear answer to all else."""

import asyncio
import base64
import io
import json
import re
import threading
from contextlib import asynccontextmanager

import httpx
import keras
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from message_of import message_of
from named_languages import make, sentence_piece_model
from PIL import Image
from small_preset import small_preset

from kzoo.decoding import SearchSettings
from kzoo.errors import UserError
from kzoo.models import AttentionBridgeBackbone, MultilingualTranslator, Translator
from kzoo.presets import image_text_tiny, pope_tiny
from kzoo.serve import Limits, Served, create_app, inputs
from kzoo.serve import served as serving
from kzoo.serve.app import most_elements
from kzoo.serve.rest import metadata
from kzoo.text import SubwordTokenizer, train_subwords

TEXTS = [
    "a man walks.",
    "two dogs run in the snow.",
    "",
    "the man sees a dog.",
    "dogs.",
    "a man and two dogs.",
]
SIZES = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}
LIMITS = Limits(characters=200, sentences=16, body=20_000, queue=64)
PREDICT = "/v1/models/tiny:predict"
BEAM_2 = SearchSettings(2)


@pytest.fixture(autouse=True)
def ready_at_once(usual_length):
    usual_length(0)


def subwords(**kwargs):
    return SubwordTokenizer(train_subwords([text for text in TEXTS if text] * 5, 40), **kwargs)


@pytest.fixture(scope="module")
def translator():
    keras.utils.set_random_seed(1)
    return pope_tiny(subwords(), **SIZES)


@pytest.fixture
def named_languages(translator):
    """The translator, to which a test may give languages."""
    yield translator
    translator.source_language = translator.target_language = None


@pytest.fixture(scope="module")
def multilingual():
    keras.utils.set_random_seed(1)
    tokenizers = {code: subwords(config_file=f"{code}_tokenizer.json") for code in ("en", "de", "fr")}
    sizes = {"embedding_dim": 16, "width": 16, "num_decoder_layers": 1, "num_heads": 2, "hidden_dim": 16}
    backbone = AttentionBridgeBackbone([40] * 3, encoder="cnn", max_length=16, **sizes)
    return MultilingualTranslator(backbone, tokenizers)


@pytest.fixture(scope="module")
def reader_of_pictures():
    keras.utils.set_random_seed(1)
    return image_text_tiny(subwords(), image_shape=(16, 16, 3), **SIZES)


@pytest.fixture(scope="module")
def reader_of_features():
    keras.utils.set_random_seed(1)
    return image_text_tiny(subwords(), image_shape=(2, 6), **SIZES)


def served(translator, search=BEAM_2, **options) -> Served:
    translator.search = search
    return Served(translator, "tiny", **{"max_batch": 5, "limits": LIMITS} | options)


@asynccontextmanager
async def client_of(model: Served):
    """Give a client of a running application."""
    app = create_app(model)
    async with (
        app.router.lifespan_context(app),
        httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=60) as client,
    ):
        yield client


def ask(model: Served, *requests) -> list[httpx.Response]:
    """Return the answers to requests that come at once: bodies to predict from, or paths to get."""

    async def main():
        async with client_of(model) as client:
            return await asyncio.gather(*(send(client, request) for request in requests))

    return asyncio.run(main())


async def send(client, request):
    if isinstance(request, str):
        return await client.get(request)
    content = request if isinstance(request, bytes) else json.dumps(request).encode()
    return await client.post(PREDICT, content=content)


def check_error(answer: httpx.Response, status: int, message: str):
    assert answer.status_code == status
    assert list(answer.json()) == ["error"]
    assert re.search(message, answer.json()["error"])
    assert "\n" not in answer.json()["error"]


def b64(content: bytes) -> dict:
    return {"b64": base64.b64encode(content).decode()}


def png(array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(array).save(file, "PNG")
    return file.getvalue()


def test_translations_are_those_of_translate(translator):
    expected = translator.n_best(TEXTS, 2, beam_size=2)
    rows, columns, several, none = ask(
        served(translator),
        {"instances": TEXTS},
        {"inputs": {"text": TEXTS}},
        {"inputs": TEXTS, "signature_name": "n_best"},
        {"inputs": []},
    )
    best = [hypotheses[0].text for hypotheses in expected]
    assert [row["translation"] for row in rows.json()["predictions"]] == best
    scores = [row["score"] for row in rows.json()["predictions"]]
    np.testing.assert_allclose(scores, [hypotheses[0].score for hypotheses in expected], atol=1e-5)
    assert columns.json()["outputs"]["translation"] == best
    found = several.json()["outputs"]
    for texts, values, hypotheses in zip(found["translation"], found["score"], expected, strict=True):
        missing = 2 - len(hypotheses)
        assert texts == [h.text for h in hypotheses] + [""] * missing
        np.testing.assert_allclose(values, [h.score for h in hypotheses] + [-1e9] * missing, rtol=1e-4)
    assert none.json() == {"outputs": {"translation": [], "score": [], "doubtful": []}}


def test_translations_begin_with_a_prefix(translator):
    prefixes = ["dogs", "", "a man", "two", "", "snow"]
    expected = translator.n_best(TEXTS, 2, beam_size=2, prefixes=prefixes)
    begun, unknown, long, longer, none = ask(
        served(translator),
        {"inputs": {"text": TEXTS, "prefix": prefixes}, "signature_name": "prefixed"},
        {"inputs": {"text": ["a"], "prefix": ["犬"]}, "signature_name": "prefixed"},
        {"inputs": {"text": ["a"], "prefix": ["dogs " * 30]}, "signature_name": "prefixed"},
        {"inputs": {"text": ["a"], "prefix": ["dogs " * 60]}, "signature_name": "prefixed"},
        {"inputs": {"text": ["a"]}, "signature_name": "prefixed"},
    )
    best = [texts[0] for texts in begun.json()["outputs"]["translation"]]
    assert best == [hypotheses[0].text for hypotheses in expected]
    begins = [one.startswith(prefix) for one, prefix in zip(best, prefixes, strict=True)]
    assert begins == [True, True, False, True, True, True]  # an empty text has an empty translation
    check_error(unknown, 400, "犬")
    check_error(long, 400, "15")
    check_error(longer, 400, "prefix 1 has 300 characters")
    check_error(none, 400, "prefix")


def test_a_translation_of_a_low_score_is_doubtful(named_languages, multilingual, tmp_path):
    translator = named_languages
    """As on the page: by the direction's own score, of any sentence, in rows and columns."""
    texts = ["a man walks.", "dogs. a man and two dogs.", ""]
    sentences = [texts[0], *texts[1].split(" ", 1)]
    first, *two = [best[0].score for best in translator.n_best(sentences, 1, beam_size=2)]
    low = {"en-de": sum(two) / 2, "fr-de": 1.0}
    preset = small_preset(tmp_path, {"low_scores": low}, search={"beam_size": 2})
    requests = (
        {"inputs": texts},
        {"inputs": texts, "split_sentences": True},
        {"instances": texts[:1], "signature_name": "n_best"},
        {"instances": [{"text": texts[0], "prefix": ""}], "signature_name": "prefixed"},
    )
    unknown = ask(served(translator), *requests)
    assert unknown[0].json()["outputs"]["doubtful"] == [None] * 3
    translator.source_language, translator.target_language = "en", "de"
    whole, split, several, prefixed = ask(served(translator, preset=preset), *requests)
    scores = whole.json()["outputs"]["score"]
    expected = [score < low["en-de"] for score in scores]
    assert whole.json()["outputs"]["doubtful"] == expected
    assert split.json()["outputs"]["doubtful"] == [first < low["en-de"], True, False]
    assert split.json()["outputs"]["score"][1] != scores[1]
    assert several.json()["predictions"][0]["doubtful"] is expected[0]
    assert "doubtful" not in prefixed.json()["predictions"][0]
    languages = {"source_language": ["fr", "en", "de"], "target_language": ["de", "de", "en"]}
    (mixed,) = ask(served(multilingual, preset=preset), {"inputs": {"text": ["dogs."] * 3, **languages}})
    found = mixed.json()["outputs"]
    assert found["doubtful"] == [True, found["score"][1] < low["en-de"], None]


def test_a_search_is_the_translator_s(translator):
    translator = Translator(translator.backbone, translator.source_tokenizer)
    search = SearchSettings(3, length_penalty=-1.0, max_length=6)
    (answer,) = ask(served(translator, search), {"inputs": TEXTS[:1], "signature_name": "n_best"})
    expected = translator.n_best(TEXTS[:1])[0]
    assert answer.json()["outputs"]["translation"][0][: len(expected)] == [h.text for h in expected]


def test_texts_of_several_sentences_are_split(translator, multilingual):
    texts = ["a man walks. dogs.", "", "two dogs run in the snow."]
    first, dogs, last = translator.translate(["a man walks.", "dogs.", texts[2]], beam_size=2)
    expected, languages = [f"{first} {dogs}", "", last], {"source_language": "en", "target_language": "fr"}
    split, wrong = ask(
        served(translator),
        {"instances": texts, "split_sentences": True},
        {"instances": texts, "split_sentences": 1},
    )
    assert [row["translation"] for row in split.json()["predictions"]] == expected
    check_error(wrong, 400, "split_sentences")
    rows = [{"text": text, **languages} for text in texts]
    (split,) = ask(served(multilingual), {"instances": rows, "split_sentences": True})
    options = {"beam_size": 2, "split_sentences": True, **languages}
    found = [row["translation"] for row in split.json()["predictions"]]
    assert found == multilingual.translate(texts, **options)
    assert found[0] == " ".join(multilingual.translate(["a man walks.", "dogs."], beam_size=2, **languages))


@pytest.mark.parametrize(("small", "thread"), [(0, "checks_0"), (100, "MainThread")])
def test_texts_are_split_when_there_is_room_and_large_ones_in_a_thread(
    small, thread, translator, monkeypatch
):
    monkeypatch.setattr(serving, "SMALL", small)
    threads, called = [], serving.SplitTexts

    def noted(*arguments):
        threads.append(threading.current_thread().name)
        return called(*arguments)

    monkeypatch.setattr(serving, "SplitTexts", noted)
    request = {"instances": ["a man walks. dogs."] * 2, "split_sentences": True}
    (busy,) = ask(served(translator, limits=Limits(queue=1)), request)
    check_error(busy, 503, "2 more")
    assert threads == []
    ask(served(translator), request, request)
    assert threads == [thread] * 2


def test_a_split_text_has_its_limits_and_its_picture(translator, reader_of_pictures, random):
    (many,) = ask(served(translator), {"instances": ["a dog. " * 17], "split_sentences": True})
    check_error(many, 400, "17 sentences")
    pixels = random.integers(0, 256, (2, 16, 16, 3), "uint8")
    texts = ["a man walks. dogs.", "two dogs."]
    rows = [{"text": text, "image": b64(png(picture))} for text, picture in zip(texts, pixels, strict=True)]
    (split,) = ask(served(reader_of_pictures), {"instances": rows, "split_sentences": True})
    found = [row["translation"] for row in split.json()["predictions"]]
    options = {"beam_size": 2, "images": pixels, "split_sentences": True}
    assert found == reader_of_pictures.translate(texts, **options)
    apart = {"beam_size": 2, "images": pixels[[0, 0]]}
    assert found[0] == " ".join(reader_of_pictures.translate(["a man walks.", "dogs."], **apart))


@pytest.mark.parametrize("options", [{"max_wait": float("nan")}, {"max_wait": 1e13}, {"name": "a/b"}])
def test_what_a_server_cannot_be_is_refused(translator, options):
    with pytest.raises(UserError, match=next(iter(options))):
        Served(translator, **{"name": "tiny"} | options)


def test_concurrent_requests_share_a_batch_and_a_bad_one_fails_alone(translator):
    """Eight sentences fill a batch, which nothing else would start in this time."""
    model = served(translator, max_batch=8, max_wait=600_000)
    texts = [text for text in TEXTS if text] + TEXTS[-3:]
    *good, bad = ask(model, *({"instances": [text]} for text in texts), {"instances": ["dogs " * 30]})
    expected = translator.translate(texts, beam_size=2)
    assert [answer.json()["predictions"][0]["translation"] for answer in good] == expected
    check_error(bad, 400, "15")
    metrics = model.metrics.text().decode()
    assert "kzoo_batch_sentences_count 1.0" in metrics
    assert f"kzoo_batch_sentences_sum {len(texts)}.0" in metrics
    assert 'kzoo_requests_total{purpose="model",status="400"} 1.0' in metrics
    assert f"kzoo_sentences_total {len(texts)}.0" in metrics


def test_languages_in_one_request_and_across_requests(multilingual):
    source, target = ["en", "de", "en", "fr", "de", "en"], ["de", "en", "fr", "fr", "en", "de"]
    expected = [
        multilingual.translate([text], s, t, beam_size=2)[0]
        for text, s, t in zip(TEXTS, source, target, strict=True)
    ]
    one_way = {"source_language": ["en"] * 6, "target_language": ["fr"] * 6}
    mixed, same, unknown, fewer = ask(
        served(multilingual),
        {"inputs": {"text": TEXTS, "source_language": source, "target_language": target}},
        {"inputs": {"text": TEXTS, **one_way}},
        {"instances": [{"text": "a", "source_language": "xx", "target_language": "de"}]},
        {"inputs": {"text": TEXTS, "source_language": ["en"], "target_language": ["de"]}},
    )
    assert mixed.json()["outputs"]["translation"] == expected
    assert same.json()["outputs"]["translation"] == multilingual.translate(TEXTS, "en", "fr", beam_size=2)
    check_error(unknown, 400, "en, de, fr.*'xx'")
    check_error(fewer, 400, "6 .* 1 of source_language")


def test_a_model_of_one_direction_takes_its_own_languages(named_languages):
    translator = named_languages
    translator.source_language, translator.target_language = "en", "de"
    languages = {"source_language": "en-GB", "target_language": "DE"}
    plain, rows, columns, other = ask(
        served(translator),
        {"instances": TEXTS},
        {"instances": [{"text": text, **languages} for text in TEXTS]},
        {"inputs": {"text": TEXTS, "target_language": ["ger"] * len(TEXTS)}},
        {"instances": [{"text": "a", "target_language": "fr"}]},
    )
    assert rows.json() == plain.json()
    found = [row["translation"] for row in plain.json()["predictions"]]
    assert columns.json()["outputs"]["translation"] == found
    check_error(other, 400, "'fr'")


def test_the_bridge_embeds_sentences(multilingual):
    languages = ["en", "DE", "en", "fr", "de-AT", "en-GB"]
    texts = [*TEXTS[:5], "犬犬"]  # translation would copy the last
    model = served(multilingual)
    columns, rows, unknown, split = ask(
        model,
        {"inputs": {"text": texts, "language": languages}, "signature_name": "embed"},
        {"instances": [{"text": TEXTS[0], "language": "en"}], "signature_name": "embed"},
        {"instances": [{"text": TEXTS[0], "language": "xx"}], "signature_name": "embed"},
        {
            "instances": [{"text": TEXTS[0], "language": "en"}],
            "signature_name": "embed",
            "split_sentences": True,
        },
    )
    expected = [multilingual.embed([text], code)[0] for text, code in zip(texts, languages, strict=True)]
    np.testing.assert_allclose(columns.json()["outputs"], expected, atol=1e-5)
    assert expected[-1].any()
    np.testing.assert_allclose(rows.json()["predictions"][0], expected[0], atol=1e-5)
    check_error(unknown, 400, "'xx'")
    check_error(split, 400, "split_sentences")
    assert "kzoo_sentences_total 7.0" in model.metrics.text().decode()


def test_pictures_come_as_files(reader_of_pictures, random):
    pixels = random.integers(0, 256, (6, 16, 16, 3), "uint8")
    files = [png(picture) for picture in pixels]
    rows, cut, text, missing = ask(
        served(reader_of_pictures),
        {"instances": [{"text": t, "image": b64(f)} for t, f in zip(TEXTS, files, strict=True)]},
        {"inputs": {"text": TEXTS[:2], "image": [b64(files[0]), b64(files[1][:-40])]}},
        {"inputs": {"text": ["a"], "image": [b64(b"no picture")]}},
        {"instances": ["a"]},
    )
    found = [row["translation"] for row in rows.json()["predictions"]]
    assert found == reader_of_pictures.translate(TEXTS, beam_size=2, images=pixels)
    check_error(cut, 400, "image 2")
    check_error(text, 400, "image 1")
    check_error(missing, 400, "image")


def test_a_jpeg_that_goes_over_its_pixels_too_often_is_refused(reader_of_pictures, random):
    file = io.BytesIO()
    Image.fromarray(random.integers(0, 256, (16, 16, 3), "uint8")).save(file, "JPEG", progressive=True)
    progressive = file.getvalue()
    scan = progressive[progressive.rindex(inputs.SCAN) : -2]
    whole, many = ask(
        served(reader_of_pictures),
        *(
            {"inputs": {"text": ["a"], "image": [b64(image)]}}
            for image in (progressive, progressive[:-2] + 100 * scan + progressive[-2:])
        ),
    )
    assert whole.status_code == 200
    check_error(many, 400, "image 1 .*100 scans")


def test_all_pictures_of_a_request_have_so_many_pixels_at_most(reader_of_pictures, monkeypatch):
    monkeypatch.setattr(inputs, "MOST_PIXELS", 3 * 20 * 10)
    image = b64(png(np.zeros((10, 20, 3), "uint8")))
    three, four, apart = ask(
        served(reader_of_pictures),
        *({"inputs": {"text": ["dogs."] * count, "image": [image] * count}} for count in (3, 4, 1)),
    )
    assert (three.status_code, apart.status_code) == (200, 200)
    check_error(four, 400, "800 pixels.*600")


def test_features_come_as_numbers(reader_of_features, random):
    features = random.normal(size=(6, 2, 6)).astype("float32")
    columns, *wrong = ask(
        served(reader_of_features),
        {"inputs": {"text": TEXTS, "image": features.tolist()}},
        *(
            {"instances": [{"text": "a", "image": image}]}
            for image in (features[0].T.tolist(), [[1], [1, 2]], [["1"] * 6] * 2, None, [[True] * 6] * 2)
        ),
        {"instances": [{"text": "a", "image": [[1e300] * 6] * 2}]},
    )
    expected = reader_of_features.translate(TEXTS, beam_size=2, images=features)
    assert columns.json()["outputs"]["translation"] == expected
    check_error(wrong[0], 400, r"sentence 1.*\(6, 2\)")
    check_error(wrong[1], 400, "image 1 ")
    for answer in wrong[2:-1]:
        check_error(answer, 400, "`(str|null|bool)` .*image")
    check_error(wrong[-1], 400, "sentence 1")


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"instances": ["a man walks.", "x" * 201]}, 400, "sentence 2 has 201"),
        ({"instances": ["a"] * 17}, 400, "17 sentences"),
        ({"instances": [{"text": "a", "image": [1]}]}, 400, "`image`"),
        (b'{"instances": ["\\ud800"]}', 400, "truncated"),
        (b'{"instances": ["\xff"]}', 400, "utf-8"),
        (b'{"instances": ["a"], "beam": 3}', 400, "`beam`"),
        (b"x" * 20_001, 413, "20,000 bytes"),
    ],
)
def test_what_is_wrong_is_said_and_the_next_request_is_unharmed(translator, body, status, message):
    async def main():
        async with client_of(served(translator)) as client:
            return [await send(client, request) for request in (body, {"instances": ["dogs."]})]

    wrong, right = asyncio.run(main())
    check_error(wrong, status, message)
    assert right.status_code == 200


def test_a_request_may_have_more_elements_where_sentences_have_numbers(translator, reader_of_features):
    assert most_elements(served(translator)) == 200_000
    assert most_elements(served(reader_of_features)) == 200_000 + 16 * 2 * 6


@pytest.mark.parametrize("text", ["\0\x07\x1b", "😀" * 3, "שלום", "a 人 д", "\u202e", "\n", " "])
def test_unusual_text_is_translated_as_translate_does(translator, text):
    (answer,) = ask(served(translator), {"instances": [text]})
    assert answer.json()["predictions"][0]["translation"] == translator.translate([text], beam_size=2)[0]


def test_other_addresses(translator):
    model = served(translator, version=3)
    missing = "this server has GET /v1/models/tiny and POST /v1/models/tiny:predict, version 3"
    gets = {
        "/v1/models/tiny/versions/3": (200, None),
        "/v1/models/tiny/versions/4": (404, missing),
        "/v1/models/other": (404, f"not found: GET /v1/models/other; {missing}"),
        "/v1/models/tiny/metadata": (200, None),
        "/v1/models/other/metadata": (404, missing),
        "/elsewhere": (404, "Not Found"),
    }
    answers = dict(zip(gets, ask(model, *gets), strict=True))
    for path, (status, message) in gets.items():
        if message:
            check_error(answers[path], status, message)
        else:
            assert answers[path].status_code == status
    found = answers["/v1/models/tiny/metadata"].json()
    assert found["model_spec"] == {"name": "tiny", "signature_name": "", "version": "3"}
    assert found == json.loads(json.dumps(metadata(model)))

    async def posts():
        async with client_of(model) as client:
            for path in ("tiny/versions/3:predict", "tiny/versions/4:predict", "tiny:classify", "tiny"):
                yield await client.post(f"/v1/models/{path}", json={"instances": ["dogs."]})

    async def main():
        return [answer async for answer in posts()]

    right, version, classify, model = asyncio.run(main())
    assert right.status_code == 200
    for answer in (version, classify, model):
        check_error(answer, 404, "POST /v1/models/tiny.*GET /v1/models/tiny")


@pytest.mark.parametrize(
    ("kind", "languages"),
    [("m2m", ["source_language", "target_language"]), ("small", ["target_language"])],
)
def test_the_inputs_are_the_languages_that_a_model_has_no_default_for(kind, languages):
    translator, rows = make(kind, sentence_piece_model()), [{"text": "A dog."}]

    def answers(*bodies) -> tuple[dict, list[int]]:
        about, *answers = ask(served(translator), "/v1/models/tiny/metadata", *bodies)
        found = about.json()["metadata"]["signature_def"]["signature_def"]
        inputs = {name: [*signature["inputs"]] for name, signature in found.items()}
        return inputs, [answer.status_code for answer in answers]

    named = [{**rows[0], "source_language": "en", "target_language": "de"}]
    inputs, statuses = answers({"instances": rows}, {"instances": named})
    both = ["text", *languages]
    assert inputs == {"serving_default": both, "n_best": both, "prefixed": [*both, "prefix"]}
    assert statuses == [400, 200]
    translator.source_language, translator.target_language = "en", "de"
    inputs, statuses = answers({"instances": rows}, {"instances": named})
    assert inputs["serving_default"] == ["text"]
    assert statuses == [200, 200]


def test_a_full_queue_says_when_to_come_again(translator):
    limits = Limits(sentences=16, queue=4)
    (answer,) = ask(served(translator, limits=limits), {"instances": ["a"] * 5})
    check_error(answer, 503, "5 more")
    assert answer.headers["retry-after"] == "1"


def test_health_and_readiness(translator, usual_length):
    """It is not ready until the search, which is held up, has run."""
    usual_length(16)
    model, go_on = served(translator, max_batch=1), threading.Event()
    search = model._search

    def held(*arguments):
        assert go_on.wait(60)
        return search(*arguments)

    async def main():
        model._search = held
        async with client_of(model) as client:
            try:
                paths = ("/healthz", "/readyz", "/v1/models/tiny", "/page/about")
                before = [await client.get(path) for path in paths]
            finally:
                go_on.set()
            async with asyncio.timeout(60):
                while model.readiness:
                    await asyncio.sleep(0.01)
            paths = ("/readyz", "/v1/models/tiny", "/metrics", "/page/about")
            return before, [await client.get(path) for path in paths]

    (alive, not_ready, loading, preparing), (ready, available, metrics, about) = asyncio.run(main())
    assert preparing.json()["readiness"] == not_ready.json()["error"]
    assert about.json()["readiness"] == ""
    assert (alive.status_code, not_ready.status_code, ready.status_code) == (200, 503, 200)
    ok = {"error_code": "OK", "error_message": ""}
    for answer, state in ((loading, "LOADING"), (available, "AVAILABLE")):
        assert answer.json() == {"model_version_status": [{"version": "1", "state": state, "status": ok}]}
    assert metrics.headers["content-type"].startswith("text/plain")
    assert "# TYPE kzoo_request_seconds histogram" in metrics.text


def test_a_model_that_fails_at_the_start_is_neither_ready_nor_alive(translator, usual_length):
    usual_length(16)
    model = served(translator, max_batch=1)

    def fail(*_):
        raise MemoryError

    async def main():
        model._search = fail
        async with client_of(model) as client:
            async with asyncio.timeout(60):
                while model.readiness != serving.BROKEN:
                    await asyncio.sleep(0.01)
            return [await client.get(path) for path in ("/healthz", "/readyz", "/v1/models/tiny")]

    alive, ready, state = asyncio.run(main())
    for answer in (alive, ready):
        check_error(answer, 503, "log")
    assert state.json()["model_version_status"][0]["state"] == "END"
    assert state.json()["model_version_status"][0]["status"]["error_code"] == "INTERNAL"


def test_probes_may_ask_for_the_head_alone_and_are_sent_nowhere_else(translator):
    async def main():
        async with client_of(served(translator)) as client:
            return await client.head("/healthz"), await client.get("/healthz/")

    head, slash = asyncio.run(main())
    assert (head.status_code, head.content) == (200, b"")
    assert slash.status_code == 404


def test_failures_and_the_page_are_counted(translator):
    model = served(translator)

    async def fail(*_, **__):
        raise RuntimeError("broken")

    async def main():
        transport = httpx.ASGITransport(create_app(model), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await model.start()
            answer = await send(client, {"instances": ["dogs."]})
            await client.get("/")
            await model.stop()
            return answer, await client.get("/metrics")

    model.prepared = fail
    failed, metrics = asyncio.run(main())
    check_error(failed, 500, "log")
    assert 'kzoo_requests_total{purpose="model",status="500"} 1.0' in metrics.text
    assert 'kzoo_requests_total{purpose="page",status="200"} 1.0' in metrics.text
    assert 'kzoo_request_seconds_count{purpose="page"} 1.0' in metrics.text
    assert 'kzoo_request_seconds_count{purpose="model"}' not in metrics.text  # refused


def test_a_model_whose_scores_are_not_finite_is_not_the_clients_fault(translator):
    def fail(*_, **__):
        raise UserError("the scores of sentence 2 are not finite")

    async def main():
        transport = httpx.ASGITransport(create_app(model), raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            await model.start()
            try:
                return await send(client, {"instances": ["dogs."]})
            finally:
                await model.stop()

    broken = Translator(translator.backbone, translator.source_tokenizer)
    broken.n_best_of_rows = fail
    model = served(broken)
    check_error(asyncio.run(main()), 500, "log")


@pytest.mark.parametrize("name", ["", "a/b", "{a}"])
def test_names_that_cannot_be(translator, name):
    assert repr(name) in message_of(Served, translator, name)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(["text", "b64", "image"]) | st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.fixed_dictionaries(
    {},
    optional={
        "instances": VALUES | st.lists(st.text(max_size=20), max_size=4),
        "inputs": VALUES | st.fixed_dictionaries({"text": VALUES}),
        "signature_name": st.sampled_from(["serving_default", "n_best", "embed", ""]) | VALUES,
    },
)


def test_no_body_harms_the_next_request(translator):
    model, right = served(translator), {"instances": ["dogs."]}

    @settings(max_examples=150, derandomize=True, deadline=None, database=None)
    @given(st.binary(max_size=60) | (VALUES | OBJECTS).map(lambda value: json.dumps(value).encode()))
    def any_body(body):
        answer = runner.run(send(client, body))
        assert answer.status_code in (200, 400)
        if answer.status_code == 400:
            check_error(answer, 400, ".")

    with asyncio.Runner() as runner:
        opened = client_of(model)
        client = runner.run(opened.__aenter__())
        any_body()
        last = runner.run(send(client, right))
        runner.run(opened.__aexit__(None, None, None))
    assert last.json()["predictions"][0]["translation"] == translator.translate(["dogs."], beam_size=2)[0]
