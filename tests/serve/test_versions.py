"""New versions of a served preset, as folders `1`, `2`, …: taken up without losing a request."""

import asyncio
import gc
import json
import shutil
import threading
import weakref
from html import escape
from types import SimpleNamespace

import httpx
import keras
import pytest
from test_serving_process import PREDICT, TEXTS, ask, preset, serving, wait_until  # noqa: F401
from tiny_models import pope

from kzoo.errors import UserError
from kzoo.hub.location import newest_version
from kzoo.presets import load, locate
from kzoo.serve import Served
from kzoo.serve.metrics import Metrics
from kzoo.serve.server import GracefulServer
from kzoo.serve.versions import NewVersions


@pytest.fixture
def folder(preset, tmp_path):  # noqa: F811
    """The folder of a model with its first version."""
    shutil.copytree(preset, tmp_path / "tiny" / "1")
    return tmp_path / "tiny"


def other_version(folder, number):
    """Write another model as a version, not at once, as `cp` would."""
    keras.utils.set_random_seed(number)
    translator = load(folder / "1")
    for weight in translator.backbone.weights:
        weight.assign(keras.random.normal(weight.shape))
    translator.save_to_preset(folder.parent / f"new{number}")
    shutil.copytree(folder.parent / f"new{number}", folder / str(number))


def test_the_newest_version_is_the_greatest_number_of_a_preset(folder):
    shutil.copytree(folder / "1", folder / "10")
    shutil.copytree(folder / "1", folder / "9")
    shutil.copytree(folder / "1", folder / "11a")
    (folder / "12").mkdir()
    assert newest_version(folder) == 10
    assert (locate(folder).place, locate(folder).name) == (folder / "10", "tiny")
    assert newest_version(folder / "1") is newest_version(folder / "missing") is None
    found = locate(folder)
    shutil.copytree(folder / "1", folder / "13")
    assert (found.version, locate(folder).version, locate(folder / "13").version) == (10, 13, None)


def test_a_preset_beside_folders_of_versions_is_none_of_them(folder):
    shutil.move(folder / "1", folder / "10")
    shutil.copytree(folder / "10", folder, dirs_exist_ok=True)
    assert (locate(folder).place, locate(folder).version) == (folder, None)
    with serving(folder) as (_, port):
        status = json.loads(ask(port, "GET", "/v1/models/tiny")[1])["model_version_status"]
    assert [one["version"] for one in status] == ["1"]


def test_a_request_is_answered_while_a_new_version_is_taken_up(folder):
    rows, found, ended = json.dumps({"instances": TEXTS}), [], threading.Event()

    def client(port):
        while not ended.is_set():
            found.append(ask(port, "POST", PREDICT, rows))

    def version(port):
        return json.loads(ask(port, "GET", "/v1/models/tiny")[1])["model_version_status"][0]["version"]

    with serving(folder) as (_, port):
        clients = [threading.Thread(target=client, args=[port]) for _ in range(3)]
        for one in clients:
            one.start()
        assert version(port) == "1"
        other_version(folder, 2)
        wait_until(lambda: version(port) == "2")
        count = len(found)
        wait_until(lambda: len(found) > count + 10)
        ended.set()
        for one in clients:
            one.join()
    assert {status for status, _ in found} == {200}
    expected = [load(folder / number).translate(TEXTS, beam_size=2) for number in ("1", "2")]
    translations = [[row["translation"] for row in json.loads(body)["predictions"]] for _, body in found]
    assert expected[0] != expected[1]
    assert translations[0] == expected[0] and translations[-1] == expected[1]
    assert all(one in expected for one in translations)


def test_a_version_that_cannot_be_read_is_tried_again_when_it_changes(folder):
    tried = []

    def broken(name, number):
        tried.append((name, number))
        raise UserError("a file is missing")

    served = SimpleNamespace(name="tiny", version=1)
    new_versions = NewVersions({"tiny": folder}, broken)
    assert new_versions([served]) == [] and tried == []
    shutil.copytree(folder / "1", folder / "2")
    for _ in range(2):
        assert new_versions([served]) == []
    assert tried == [("tiny", 2)]
    (folder / "2" / "more").write_text("a file that was missing")
    assert new_versions([served]) == []
    assert tried == [("tiny", 2)] * 2


def test_a_version_without_a_preset_is_named_once(folder, caplog):
    served, taken = SimpleNamespace(name="tiny", version=1), []
    new_versions = NewVersions({"tiny": folder}, lambda *version: taken.append(version) or version)
    shutil.copytree(folder / "1", folder / "2")
    (folder / "3").mkdir()
    (folder / "4").write_text("no folder")
    for _ in range(2):
        new_versions([served])
    assert taken == [("tiny", 2)]
    assert [str(folder / "3") in record.getMessage() for record in caplog.records] == [True]


def test_a_translated_document_outlives_its_version():
    page = "<p>a man.</p>"

    async def main():
        models = [Served(pope(), "tiny", max_batch=1)]
        server = GracefulServer(models, new_versions=NewVersions({}, None))
        app = server.config.app
        client = httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://test", timeout=300)
        async with app._lifespan.router.lifespan_context(app), client:
            form = {"files": {"file": ("a.html", page)}, "data": {"source": "en", "target": "de"}}
            address = (await client.post("/translate_file", **form)).json()["translatedFileUrl"]
            await app._take_up(Served(pope(), "tiny", version=2, max_batch=1))
            status = (await client.get("/v1/models/tiny")).json()
            return status, (await client.get(address)).text

    status, found = asyncio.run(main())
    assert status["model_version_status"][0]["version"] == "2"
    assert found == f"<p>{escape(pope().translate(['a man.'])[0])}</p>"


def test_an_earlier_version_leaves_the_memory():
    metrics = Metrics()
    models = [Served(pope(), "tiny", max_batch=1, metrics=metrics)]
    earlier = weakref.ref(models[0])

    async def main():
        app = GracefulServer(models, new_versions=NewVersions({}, None)).config.app
        async with app._lifespan.router.lifespan_context(app):
            await app._take_up(Served(pope(), "tiny", version=2, max_batch=1, metrics=metrics))
            gc.collect()
            return earlier(), [one.version for one in models], len(metrics.batchers)

    assert asyncio.run(main()) == (None, [2], 1)
    assert not metrics.batchers
