"""One table of formats, by whose names the command, the method and the functions export."""

import pytest
from message_of import message_of
from typer.testing import CliRunner

import kzoo.export
from kzoo.cli import app
from kzoo.export import export_argos, export_ctranslate2
from kzoo.export_formats import FORMATS
from kzoo.presets import locate

PRESET = "pope_small_multi30k_en_de"


def test_each_format_has_a_function_and_the_command_lists_it():
    assert {f"export_{name}" for name in FORMATS} == set(kzoo.export.__all__)
    usage = CliRunner().invoke(app, ["export", "--help"], env={"COLUMNS": "400"}).output
    assert "|".join(FORMATS) in usage


def test_a_loaded_translator_and_its_preset_give_the_same_files(shelved, tmp_path):
    pytest.importorskip("ctranslate2", reason="CTranslate2 is not installed")
    translator = shelved(PRESET)
    translator.export(tmp_path / "a", "ctranslate2", beam_size=2, precision="float16")
    export_ctranslate2(locate(PRESET), tmp_path / "b", "float16", beam_size=2)
    for path in sorted((tmp_path / "a").iterdir()):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes(), path
    translator.export(tmp_path / "a.argosmodel", "argos", precision="int8")
    export_argos(locate(PRESET), tmp_path / "b.argosmodel", "int8")
    sizes = [(tmp_path / f"{name}.argosmodel").stat().st_size for name in "ab"]
    assert sizes[0] == pytest.approx(sizes[1], abs=5_000)  # the preset's has its card and its scores


def test_a_format_that_is_not_there_is_named(shelved, tmp_path):
    assert "'onnx'" in message_of(shelved(PRESET).export, tmp_path / "a", "onnx")
    assert "beam_size" in message_of(shelved(PRESET).export, tmp_path / "a.argosmodel", "argos", beam_size=2)
    assert not list(tmp_path.iterdir())
