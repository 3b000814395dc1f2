"""A server that translates with CTranslate2: Keras's answers over HTTP, and Keras only when it is needed."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import msgspec
import numpy as np
import pytest
from asking import answers

from kzoo.decoding import GNMT
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.hub import Preset, seal
from kzoo.presets import locate, pope_tiny
from kzoo.serve import Limits, Served, create_app
from kzoo.serve.openapi import forms
from kzoo.serve.rest import signatures
from kzoo.serve.searches import EngineSearch, KerasSearch
from kzoo.text import LanguageTokenizer, SubwordTokenizer, train_subwords
from kzoo.text.vocabulary import SPECIAL

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
PRESET = "pope_small_multi30k_en_de"
TEXTS = ["A dog runs.", "", "Two dogs run."]
LIMITS = Limits(characters=2000, sentences=8)
BEAM = 3


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KZOO_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


def asked(*requests, until=lambda answer: True) -> list[httpx.Response]:
    """Return the answers to requests that come at once: paths, or paths and bodies.

    They are asked again as long as `until` does not hold for the last answer.
    """

    async def main():
        translator = CTranslate2Translator(locate(PRESET))
        translator.search = translator.search.changed(beam_size=BEAM)
        served = Served(translator, "m", limits=LIMITS)
        app = create_app(served)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test") as client,
            asyncio.timeout(300),
        ):
            while served.readiness:
                await asyncio.sleep(0.01)
            while True:
                answers = await asyncio.gather(*(send(client, request) for request in requests))
                if until(answers[-1]):
                    return answers
                await asyncio.sleep(0.2)

    return asyncio.run(main())


async def send(client, request):
    if isinstance(request, str):
        return await client.get(request)
    return await client.post(request[0], json=request[1], timeout=300)


def predict(**body):
    return "/v1/models/m:predict", body


def test_translations_and_scores_are_keras_s(shelved):
    """Of many requests at once, whose sentences share batches."""
    expected = shelved(PRESET).n_best(TEXTS, beam_size=BEAM)
    requests = [predict(inputs=[text]) for text in TEXTS for _ in range(5)]
    *single, several = asked(*requests, predict(inputs=TEXTS, signature_name="n_best"))
    for answer, best in zip(single, (best for best in expected for _ in range(5)), strict=True):
        found = answer.json()["outputs"]
        assert found["translation"] == [best[0].text]
        np.testing.assert_allclose(found["score"], best[0].score, atol=1e-4)
    outputs = several.json()["outputs"]
    for best, texts, scores in zip(expected, outputs["translation"], outputs["score"], strict=True):
        assert texts == [one.text for one in best] + [""] * (BEAM - len(best))
        np.testing.assert_allclose(scores[: len(best)], [one.score for one in best], atol=1e-4)


def test_the_engine_is_named():
    metadata, metrics, ready = asked("/v1/models/m/metadata", "/metrics", "/readyz")
    assert metadata.json()["metadata"]["engine"] == "ctranslate2 float32"
    assert 'kzoo_engine_info{engine="ctranslate2 float32"} 1.0' in metrics.text
    assert ready.status_code == 200


def test_limits_and_refusals_are_the_same():
    answers = asked(
        predict(instances=["a " * 400]),
        predict(instances=["a"] * 9),
        predict(instances=[{"text": "a", "prefix": "\u2603"}], signature_name="prefixed"),
    )
    messages = "the model reads at most 255", "at most 8", "vocabulary lacks"
    for answer, message in zip(answers, messages, strict=True):
        assert answer.status_code == 400
        assert message in answer.json()["error"]


def test_unknown_characters_are_in_the_answer():
    rows, columns, usual = asked(
        predict(instances=["你好", "A dog ♪ runs. 好", "DOGS RUN."]),
        predict(inputs=["你好"], signature_name="n_best"),
        predict(instances=["A dog runs."]),
    )
    assert rows.json()["unknown_characters"] == ["你好", "♪好", ""]
    served, name = Served(CTranslate2Translator(locate(PRESET)), "m"), "serving_default"
    described = forms(name, signatures(served)[name])
    assert msgspec.json.decode(rows.content, type=described.answers[0]).unknown_characters[0] == "你好"
    best = [row["translation"] for row in rows.json()["predictions"]]
    assert best[0] == "你好" and best[2].isupper()
    assert columns.json()["outputs"]["translation"] == [["你好", "", ""]]
    assert columns.json()["unknown_characters"] == ["你好"]
    assert "unknown_characters" not in usual.json()


def test_texts_of_several_sentences():
    text = "A dog runs. Two dogs run."
    answer, page = asked(
        predict(inputs=[text], split_sentences=True), ("/page/translate", {"text": text, "n": 2})
    )
    expected = " ".join(CTranslate2Translator(locate(PRESET)).translate(["A dog runs.", "Two dogs run."]))
    assert answer.json()["outputs"]["translation"] == [expected]
    assert page.json()["hypotheses"][0]["text"] == expected


def test_keras_gives_prefixed_translations_and_attention(shelved):
    """The page is answered at once, and asks again until Keras is loaded for the attention."""
    seen = []

    def drawn_at_last(answer) -> bool:
        seen.append(answer.json())
        return "weights" in seen[-1]["attention"][0]

    rows = [{"text": text, "prefix": "Ein"} for text in TEXTS[:1]]
    prefixed, page = asked(
        predict(instances=rows, signature_name="prefixed"),
        ("/page/translate", {"text": TEXTS[0]}),
        until=drawn_at_last,
    )
    note = "Not drawn: the model that computes it is being prepared."
    expected = {"kind": "encoder_decoder", "note": note, "preparing": True}
    assert all(answer["attention"] == [expected] for answer in seen[:-1])
    assert len(seen) > 1
    keras = shelved(PRESET)
    [best] = keras.n_best(TEXTS[:1], beam_size=BEAM, prefixes=["Ein"])
    assert prefixed.json()["predictions"][0]["translation"] == [one.text for one in best]
    [drawn] = page.json()["attention"]
    expected = keras.attention(TEXTS[0], page.json()["hypotheses"][0]["text"])[2]
    np.testing.assert_allclose(drawn["weights"], expected, atol=1e-3)
    assert seen[0]["hypotheses"] == page.json()["hypotheses"]


def test_a_model_of_many_languages_translates_in_each_direction(random, tmp_path):
    """It reads and writes after the token of a language, as M2M-100 does."""
    proto = train_subwords(["a dog runs.", "ein hund."] * 5, 40)
    tokens = {"en": "_en", "de": "_de", "fr": "_fr"}
    pieces = [*SPECIAL.values(), *SubwordTokenizer(proto).get_vocabulary()[len(SPECIAL) :], *tokens.values()]
    sides = [
        LanguageTokenizer(proto, pieces, tokens, side, config_file=f"{side}_tokenizer.json")
        for side in ("source", "target")
    ]
    sizes = {"num_layers": 1, "width": 32, "num_heads": 2, "feedforward_dim": 32, "max_length": 16}
    translator = pope_tiny(*sides, **sizes)
    for weight in translator.backbone.weights:
        if len(weight.shape) > 1:  # random biases would decide the words in any language
            weight.assign(random.normal(size=weight.shape))
    translator.save_to_preset(tmp_path / "many")
    fast, texts = CTranslate2Translator(locate(tmp_path / "many")), ["a dog runs.", "a hund."]
    for search in (KerasSearch(translator, fast.search, 1), EngineSearch(fast, fast.search, 1, lambda: None)):
        assert len(search.search(*next(search.usual()))) == 1
    ways = [("en", "de"), ("de", "en"), ("en", "fr")]
    expected = [fast.translate(texts, *way) for way in ways]
    assert len(set(map(tuple, expected))) == 3
    asked = [("POST", "/translate", {"json": {"q": texts, "source": a, "target": b}}) for a, b in ways]
    found = answers(create_app(Served(fast, "m")), asked)
    assert [answer.json().get("translatedText") for answer in found] == expected


@pytest.mark.parametrize("search", [{"length_penalty": GNMT(0.6)}, {"max_length": 1}])
def test_a_search_that_ctranslate2_lacks_is_refused(search):
    translator = CTranslate2Translator(locate(PRESET))
    translator.search = translator.search.changed(**search)
    with pytest.raises(UserError, match="CTranslate2"):
        Served(translator, "m")


def test_both_engines_have_the_same_model(tmp_path):
    folder = shutil.copytree(locate(PRESET).folder, tmp_path / "preset")
    translator = CTranslate2Translator(Preset(folder))
    search = EngineSearch(translator, translator.search, 1, lambda: None)
    (folder / "notes.txt").write_text("trained further")
    seal(folder)
    with pytest.raises(UserError, match="restart"):
        search.keras  # noqa: B018


@contextmanager
def command(*arguments, **options):
    """Give the process of `kzoo serve`, and a client of it once it is ready."""
    line = [sys.executable, *arguments]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True, **options) as process:
        try:
            line = process.stdout.readline()
            assert "ctranslate2 float32" in line
            with httpx.Client(base_url=re.search(r"http://\S+:\d+", line)[0], timeout=300) as client:
                end = time.monotonic() + 60
                while client.get("/readyz").status_code != 200:  # the port is open already
                    assert time.monotonic() < end
                    time.sleep(0.05)
                yield process, client
        finally:
            process.terminate()
        assert process.wait(30) == 0


def test_the_command_imports_no_deep_learning():
    """Whoever imports it fails; and a client gets its answer over a socket."""
    code = (
        "import sys\n"
        "heavy = ('keras', 'keras_hub', 'tensorflow', 'jax', 'torch', 'transformers')\n"
        "for name in heavy: sys.modules[name] = None\n"
        f"sys.argv = ['kzoo', 'serve', '{PRESET}', '--name', 'm', '--port', '0']\n"
        "from kzoo.cli import main; main()"
    )
    with command("-c", code) as (_, client):
        answer = client.post("/v1/models/m:predict", content=json.dumps({"inputs": TEXTS[:1]}))
        assert answer.json()["outputs"]["translation"] == ["Ein Hund rennt."]


def test_the_console_says_that_it_loads_and_nothing_of_keras(tmp_path):
    """Not even when the page first shows attention. The server's log goes on meanwhile."""
    with (
        open(tmp_path / "console", "w+") as console,
        command("-m", "kzoo", "serve", PRESET, "--port", "0", stderr=console) as (_, client),
    ):
        end = time.monotonic() + 300
        while "weights" not in client.post("/page/translate", json={"text": "A dog."}).json()["attention"][0]:
            assert time.monotonic() < end
            time.sleep(0.2)
    first, *others = (tmp_path / "console").read_text("utf-8").splitlines()
    assert first == f"loading {PRESET} …"
    assert len(others) >= 3 and all(" kzoo.serve: " in line for line in others), others


def test_an_idle_model_leaves_the_memory_and_comes_back():
    translator = CTranslate2Translator(locate(PRESET))
    expected = translator.n_best(TEXTS[:1], 1)
    translator.unload_if_idle(60)
    assert translator.is_loaded
    translator.unload_if_idle(0)
    assert not translator.is_loaded
    assert translator.n_best(TEXTS[:1], 1) == expected


IN_MEMORY = f"""
import re, threading
from kzoo.engine.translator import CTranslate2Translator
from kzoo.presets import locate

def resident():
    return 1024 * int(re.search(r"VmRSS:\\s+(\\d+)", open("/proc/self/status").read())[1])

translators = [CTranslate2Translator(locate("{PRESET}")) for _ in range(4)]
for _ in range(2):
    threads = [threading.Thread(target=one.translate, args=[["A dog runs."]]) for one in translators]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    loaded = resident()
    for one in translators:
        one.unload_if_idle(0)
print((loaded - resident()) / translators[0].size)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_the_memory_of_unloaded_models_returns_to_the_system():
    """As a server loads them: in threads, whose memory glibc would keep."""
    done = subprocess.run([sys.executable, "-c", IN_MEMORY], capture_output=True, text=True, check=True)
    assert float(done.stdout) > 3


def test_a_served_model_is_unloaded_between_requests():
    translator = CTranslate2Translator(locate(PRESET))

    async def main():
        served = Served(translator, "m", keep=0.01)
        await served.start()
        found = []
        for _ in range(2):
            prepared = await served.prepared([TEXTS[0]], [served.translator.direction()])
            found += (await served.search(prepared, 1))[0]
            async with asyncio.timeout(60):
                while translator._model.model_is_loaded:
                    await asyncio.sleep(0.05)
        await served.stop()
        return found

    first, second = asyncio.run(main())
    assert first == second


def test_keras_keeps_its_model(shelved):
    with pytest.raises(UserError, match="Keras"):
        Served(shelved(PRESET), "m", keep=1.0)
