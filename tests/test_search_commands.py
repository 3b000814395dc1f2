"""Every command that translates takes the preset's own search, unless it is told another."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_preset import small_preset
from typer.testing import CliRunner

from kzoo import cli
from kzoo.decoding import GNMT, SearchSettings, TextTranslator
from kzoo.models import Hypothesis

TEXT = ["Berlin", "Paris"]
COMMANDS = {
    "translate": ["translate", "preset", *TEXT],
    "evaluate": ["evaluate", "preset", "--files", "test.en", "test.de"],
    "report": ["report", "page.html", "preset", "preset", "--files", "test.en", "test.de"],
    "export": ["export", "preset", "model"],
    "serve": ["serve", "preset", "--port", "0"],
}


class Copier(TextTranslator):
    """A translator that repeats the sentences, and notes with which search."""

    engine, runs_on_keras = "keras", True
    source_language, target_language, search = "en", "de", SearchSettings()
    target_tokenizer, max_length = None, 99

    @staticmethod
    def source_tokenizer(texts):
        return [text.split() for text in texts]

    def __init__(self, used):
        self.used = used

    def translate(self, texts, **options):
        self.used.add(self.search)
        return texts

    def n_best(self, texts, n, prefixes=None, **options):
        self.prefixes = prefixes
        return [[Hypothesis(text, -1.0)] for text in self.translate(texts)]


@pytest.fixture
def used(commands_load, tmp_path, monkeypatch):
    """The searches that commands use; they run in a folder with a preset and sentences."""
    used = set()
    monkeypatch.chdir(tmp_path)
    small_preset("preset", search={"beam_size": 7, "gnmt": 0.6, "max_length": 99})
    for language in ("en", "de"):
        Path(f"test.{language}").write_text("\n".join(TEXT) + "\n")
    commands_load(lambda _: Copier(used))
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")  # which a SavedModel needs
    monkeypatch.setattr("kzoo.export.export_saved_model", lambda model, *_, **__: used.add(model.search))

    def stub(model, name, *_, **__):
        return SimpleNamespace(
            translator=model, settings=model.search, name=name, engine=model.engine, metrics=None
        )

    monkeypatch.setattr("kzoo.cli.models_to_serve.Served", stub)
    monkeypatch.setattr(
        "kzoo.serve.serve", lambda served, *_: used.update(model.settings for model in served)
    )
    monkeypatch.setattr("kzoo.serve.startup.end_on_sigterm", lambda: None)
    return used


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("options", "search"),
    [
        ([], SearchSettings(7, GNMT(0.6), 99)),
        (["--beam", "2", "--length-penalty", "0.9"], SearchSettings(2, 0.9, 99)),
        (["--gnmt", "0.2", "--max-length", "50"], SearchSettings(7, GNMT(0.2), 50)),
    ],
)
def test_every_command_takes_the_preset_s_search(command, options, search, used):
    found = CliRunner().invoke(cli.app, [*COMMANDS[command], *options])
    assert found.exit_code == 0, found.output
    assert used == {search}


def test_an_export_to_ctranslate2_takes_the_search(tmp_path):
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    words = ["export", "pope_small_multi30k_en_de", str(tmp_path / "model"), "--format", "ctranslate2"]
    found = CliRunner().invoke(cli.app, [*words, "--beam", "2", "--length-penalty", "0.9"])
    assert found.exit_code == 0, found.output
    arguments = json.loads((tmp_path / "model/translate_batch.json").read_text())
    assert (arguments["beam_size"], arguments["length_penalty"]) == (2, 0.9)


@pytest.mark.parametrize("command", ["translate", "evaluate", "serve"])
def test_a_compute_type_needs_ctranslate2(command, used):
    found = CliRunner().invoke(cli.app, [*COMMANDS[command], "--compute-type", "int8"])
    assert found.exit_code and "int8" in str(found.exception) and not used


@pytest.mark.parametrize("command", ["translate", "evaluate", "serve"])
def test_a_device_is_ctranslate2_s(command, used, monkeypatch):
    found = CliRunner().invoke(cli.app, [*COMMANDS[command], "--device", "cuda"])
    assert found.exit_code and "--device cuda" in str(found.exception) and not used

    def opened(preset, compute_type, device, **_):
        model = Copier(used)
        model.engine = f"ctranslate2 {compute_type} on {device}"
        return model

    monkeypatch.setattr("kzoo.engine.choice.why_not", lambda *_: None)
    monkeypatch.setattr("kzoo.engine.translator.CTranslate2Translator", opened)
    options = ["--device", "cuda", "--compute-type", "float16", "--length-penalty", "1"]
    found = CliRunner().invoke(cli.app, [*COMMANDS[command], *options])
    assert found.exit_code == 0, found.output
    assert used == {SearchSettings(7, 1.0, 99)}
    assert command == "translate" or "ctranslate2 float16 on cuda" in found.output


@pytest.mark.parametrize(
    ("options", "prefixes"),
    [
        (["--prefix", "Ich"], ["Ich", "Ich"]),
        (["--prefix", "Ich", "--prefix", ""], ["Ich", ""]),
        ([], None),
    ],
)
def test_translate_takes_prefixes_and_constraints(options, prefixes, used, commands_load):
    model = Copier(used)
    commands_load(lambda _: model)
    constraints = ["--min-length", "3", "--no-repeat-ngram", "2"]
    found = CliRunner().invoke(cli.app, [*COMMANDS["translate"], *options, *constraints])
    assert found.exit_code == 0, found.output
    assert used == {SearchSettings(7, GNMT(0.6), 99, 3, 2)}
    assert model.prefixes == prefixes
