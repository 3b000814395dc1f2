"""Several presets of which not all are in memory: requests load them, and all get their answer."""

import asyncio
import json
import shutil
import subprocess
import sys
import threading
from functools import partial

import httpx
import keras
import pytest
from test_keys import KEY, line
from test_serving_process import TEXTS, ask, preset, serving, wait_until  # noqa: F401
from typer.testing import CliRunner

from kzoo import cli
from kzoo.cli.console import open_translator
from kzoo.cli.models_to_serve import ModelsToServe, NamedPreset
from kzoo.engine.conversion import converted
from kzoo.engine.loaded_models import LoadedModels
from kzoo.engine.translator import CTranslate2Translator
from kzoo.errors import UserError
from kzoo.presets import load, locate
from kzoo.serve import Served, create_app
from kzoo.serve.metrics import Metrics

pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
NAMES = ["a", "b", "c"]


@pytest.fixture(scope="module")
def presets(preset, tmp_path_factory):  # noqa: F811
    """Three presets with other weights, and what each translates `TEXTS` to."""
    folder, expected = tmp_path_factory.mktemp("several"), {}
    for number, (name, target) in enumerate(zip(NAMES, ("de", "fr", "cs"), strict=True)):
        translator = load(preset)
        keras.utils.set_random_seed(number)
        for weight in translator.backbone.weights:
            weight.assign(keras.random.normal(weight.shape))
        translator.source_language, translator.target_language = "en", target
        translator.save_to_preset(folder / name)
        expected[name] = CTranslate2Translator(locate(folder / name)).translate(TEXTS, beam_size=2)
    assert len(set(map(tuple, expected.values()))) == 3
    return folder, expected


def requests(client):
    """Return requests to each model, and to each direction, to be sent at once."""
    found = {}
    for name, target in zip(NAMES, ("de", "fr", "cs"), strict=True):
        found[name] = client.post(f"/v1/models/{name}:predict", json={"inputs": TEXTS})
        body = {"q": TEXTS, "source": "en", "target": target}
        found[target] = client.post("/translate", json=body)
    return found


def test_the_first_requests_load_models_within_the_bound(presets, tmp_path):
    folder, expected = presets
    models = [shutil.copytree(converted(locate(folder / name)), tmp_path / name) for name in NAMES]
    size = (models[0] / "model.bin").stat().st_size
    loaded = LoadedModels(2 * size + 1)
    translators = []
    for name, model in zip(NAMES, models, strict=True):
        translator = CTranslate2Translator(locate(folder / name), model=model, loaded_models=loaded)
        translator.unload_if_idle(0)
        translator.search = translator.search.changed(beam_size=2)
        translators.append(translator)
    metrics = Metrics()
    app = create_app(
        [Served(one, name, metrics=metrics) for one, name in zip(translators, NAMES, strict=True)]
    )

    async def main():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with (
            app.router.lifespan_context(app),
            httpx.AsyncClient(transport=transport, base_url="http://test", timeout=300) as client,
        ):
            while (await client.get("/readyz")).status_code != 200:
                await asyncio.sleep(0.01)
            languages = (await client.get("/languages")).json()
            assert {one["code"]: one["targets"] for one in languages}["en"] == ["cs", "de", "en", "fr"]
            assert not any(one.is_loaded for one in translators)  # none of this needed them
            for _ in range(3):
                sent = requests(client)
                found = dict(zip(sent, await asyncio.gather(*sent.values()), strict=True))
                assert {name: found[name].json()["outputs"]["translation"] for name in NAMES} == expected
                assert {answer.status_code for answer in found.values()} == {200}
                assert sum(one.is_loaded for one in translators) == 2
            for one in translators:
                one.unload_if_idle(0)
            moved = (models[1] / "model.bin").rename(tmp_path / "model.bin")
            sent = requests(client)
            found = dict(zip(sent, await asyncio.gather(*sent.values()), strict=True))
            moved.rename(models[1] / "model.bin")
            return found, await client.post("/v1/models/b:predict", json={"inputs": TEXTS})

    found, again = asyncio.run(main())
    assert {name for name, answer in found.items() if answer.status_code != 200} == {"b", "fr"}
    assert found["b"].status_code == 500 and found["b"].json()["error"]
    assert again.json()["outputs"]["translation"] == expected["b"]


def test_several_presets_are_loaded_when_they_are_asked_for(presets):
    folder, _ = presets

    def served(*names):
        named = [NamedPreset(name, locate(folder / name), 1, None) for name in names]
        load = partial(open_translator, engine="auto", loaded_models=LoadedModels())
        return ModelsToServe(named, lambda one: one.search, load, [], None, False, {}).served()

    assert not any(one.translator.is_loaded for one in served(*NAMES))
    (alone,) = served("a")
    assert alone.translator.is_loaded


def test_a_server_whose_models_leave_the_memory(presets, tmp_path):
    """And which asks for a key."""
    folder, expected = presets
    (tmp_path / "keys").write_text(line(KEY))
    options = [str(folder / "b"), str(folder / "c"), "--keep", "0.1", "--memory", "1M"]
    options += ["--keys", str(tmp_path / "keys")]
    options += [word for name in ("tiny", "b", "c") for word in ("--name", name)]
    found, wrong = [], []

    def client(port, name):
        for _ in range(5):
            path, body = f"/v1/models/{name}:predict", json.dumps({"inputs": TEXTS})
            status, content = ask(port, "POST", path, body, headers={"Authorization": f"Bearer {KEY}"})
            found.append(status)
            if json.loads(content)["outputs"]["translation"] != expected["a" if name == "tiny" else name]:
                wrong.append(name)

    with serving(folder / "a", *options) as (_, port):
        assert ask(port, "GET", "/v1/models/b")[0] == 401
        clients = [threading.Thread(target=client, args=[port, name]) for name in ("tiny", "b", "c") * 2]
        for one in clients:
            one.start()
        for one in clients:
            one.join()
    assert (found, wrong) == ([200] * 30, [])


def test_a_model_that_cannot_translate_is_found_at_the_start(presets, tmp_path):
    folder, _ = presets
    translator = load(folder / "b")
    for weight in translator.backbone.weights:
        weight.assign(weight * 0 + 3e38)  # the scores overflow
    translator.save_to_preset(tmp_path / "broken", dtype="float32")
    words = ["serve", folder / "a", tmp_path / "broken", "--port", "0", "--keep", "1"]
    command = [sys.executable, "-m", "kzoo", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode and "finite" in done.stderr and "broken" in done.stderr


@pytest.mark.parametrize(
    ("options", "says"),
    [
        (["--memory", "0.01M"], "--memory"),
        (["--memory", "4"], "4G"),
        (["--memory", "all"], "'all'"),
        (["--memory", ""], "--memory"),
        (["--keep", "1", "--engine", "keras"], "a, b: Keras"),
        (["none", "--keys", "nowhere"], "nowhere"),  # before presets are looked for
    ],
)
def test_what_cannot_be_is_refused(options, says, presets):
    folder, _ = presets
    words = ["serve", str(folder / "a"), str(folder / "b"), "--port", "0", *options]
    error = CliRunner().invoke(cli.app, words).exception
    assert isinstance(error, UserError) and says in str(error)
