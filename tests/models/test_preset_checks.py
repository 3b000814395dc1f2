"""A preset that means harm: refused in one line, and nothing that it names is imported, run or opened.

Each is sealed after it was spoiled, as who means harm would.
"""

import ast
import json
import shutil
import sys
from pathlib import Path

import keras
import pytest

import kzoo
from kzoo.errors import UserError, exits_on_errors
from kzoo.hub import seal
from kzoo.models import Translator
from kzoo.presets import pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords

SMALL = {"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "max_length": 16}
PACKAGE = Path(kzoo.__file__).parent
LAMBDA = keras.saving.serialize_keras_object(keras.layers.Lambda(lambda x: Path("ran").touch()))


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A folder that `save_to_preset` wrote."""
    translator = pope_tiny(SubwordTokenizer(train_subwords(["a man", "a dog"] * 20, 20)), **SMALL)
    folder = tmp_path_factory.mktemp("saved") / "preset"
    translator.save_to_preset(folder)
    return folder


@pytest.fixture
def preset(saved, tmp_path, monkeypatch):
    """A copy of it, in an empty working folder with a module that says when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "harm.py").write_text("open('ran', 'w')\nclass Harm: pass\nharm = print\n")
    return shutil.copytree(saved, tmp_path / "preset")


def refused(folder, match):
    """Seal a preset and try to load it: it is refused in one line, and nothing ran."""
    seal(folder)
    before = {path for path in folder.parent.rglob("*") if "__pycache__" not in path.parts}
    with pytest.raises(UserError, match=match) as error:
        Translator.from_preset(folder)
    assert "\n" not in str(error.value)
    assert "harm" not in sys.modules
    assert {path for path in folder.parent.rglob("*") if "__pycache__" not in path.parts} == before


def change(path, **changes):
    """Change entries of a JSON object, those of its `config` by `config={…}`."""
    content = json.loads(path.read_text())
    inner = {"config": {**content.get("config", {}), **changes.pop("config", {})}}
    path.write_text(json.dumps({**content, **inner, **changes}))


CLASSES = [
    {"module": "os", "class_name": "system", "registered_name": None},
    {"module": "os", "class_name": "system", "registered_name": "system"},
    {"module": "harm", "class_name": "Harm", "registered_name": "harm>Harm"},
    {"module": "harm", "class_name": "Harm", "registered_name": "kzoo>TransformerBackbone"},
    {"module": "kzoo.cli", "class_name": "main", "registered_name": None},
    {"module": "kzoo.cli", "class_name": "main", "registered_name": "kzoo>main"},
    {"module": "keras.config", "class_name": "enable_unsafe_deserialization", "registered_name": None},
    {"module": "keras.layers", "class_name": "TFSMLayer", "registered_name": None},
    {"module": "kzoo.models", "class_name": "__lambda__", "registered_name": "kzoo>TransformerBackbone"},
    {"module": ["os"], "class_name": {"a": 1}, "registered_name": 7},
    {"class_name": "Functional"},
    {"module": "keras", "class_name": "Sequential", "registered_name": None},
    {"module": "keras", "class_name": "DTypePolicy", "registered_name": "harm>Harm"},
]


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize("named", CLASSES, ids=lambda named: f"{named.get('module')}.{named['class_name']}")
def test_a_class_from_elsewhere_is_refused(preset, file, named):
    content = json.loads((preset / file).read_text())
    for key in ("module", "class_name", "registered_name"):
        content.pop(key)
    (preset / file).write_text(json.dumps({**content, **named}))
    refused(preset, f"{file} .* class ")


@pytest.mark.parametrize("file", ["config.json", "tokenizer.json"])
@pytest.mark.parametrize(
    "object",
    [
        LAMBDA,
        LAMBDA["config"]["function"],
        {"module": "builtins", "class_name": "function", "config": "eval", "registered_name": "function"},
        {"module": "harm", "class_name": "function", "config": "harm", "registered_name": "harm"},
    ],
    ids=["Lambda", "__lambda__", "eval", "harm.harm"],
)
def test_code_deep_in_a_configuration_is_refused(preset, file, object):
    change(preset / file, config={"dtype": {"module": "keras", "of": [{"deep": object}]}})
    refused(preset, f"{file} .* class ")


def test_keras_s_unsafe_mode_changes_nothing(preset):
    keras.config.enable_unsafe_deserialization()
    try:
        change(preset / "config.json", config={"activation": LAMBDA})
        refused(preset, "keras.layers.Lambda")
    finally:
        keras.src.saving.serialization_lib.global_state.set_global_attribute("safe_mode_saving", None)


@pytest.mark.parametrize(
    ("name", "match"),
    [
        ("../harm.json", "'../harm.json'"),
        ("/etc/hostname", "'/etc/hostname'"),
        ("..", r"'\.\.'"),
        ("..\\harm.json", r"'\.\.\\\\harm"),
        ("a..json", r"'a\.\.json'"),
        ("metadata", "'metadata'"),
        ("tokenizer.json.old", "'tokenizer.json.old'"),
        (7, "tokenizer 7"),
    ],
)
def test_a_tokenizer_s_file_from_elsewhere_is_refused(preset, name, match):
    change(preset / "translator.json", tokenizers=[name, name])
    refused(preset, match)


def test_a_tokenizer_s_assets_from_elsewhere_are_refused(preset, tmp_path):
    (tmp_path / "secret.spm").write_bytes(b"secret")
    tokenizer = preset / "tokenizer.json"
    change(tokenizer, config={"config_file": "../../harm.json"})
    refused(preset, "tokenizer.json .*'../../harm.json'")
    change(tokenizer, config={"config_file": "other.json"})
    refused(preset, "saved as tokenizer.json")
    change(tokenizer, config={"config_file": "tokenizer.json", "proto": str(tmp_path / "secret.spm")})
    refused(preset, "tokenizer.json .* path")


def test_a_tokenizer_s_class_from_a_newer_kzoo_is_said_so(preset):
    change(preset / "tokenizer.json", class_name="ByteTokenizer", registered_name="kzoo>ByteTokenizer")
    refused(preset, "'kzoo>ByteTokenizer'.* update ")


@pytest.mark.parametrize("content", [{}, {"model_type": "bert"}, {"architecture": "resnet18", "config": {}}])
def test_a_model_of_another_library_is_refused(preset, content):
    (preset / "config.json").write_text(json.dumps(content))
    refused(preset, "config.json .*None.None")


@pytest.mark.parametrize("character", ["\x1b", "\n", "\x9b", "\u202e"])
def test_what_it_names_does_not_steer_the_terminal(preset, character, capsys):
    content = json.loads((preset / "config.json").read_text())
    content["module"] = f"os{character}[2Jerror: all is well"
    (preset / "config.json").write_text(json.dumps(content))
    seal(preset)
    with pytest.raises(SystemExit) as stop, exits_on_errors():
        Translator.from_preset(preset)
    assert stop.value.code.isprintable()
    assert " os" in stop.value.code


def test_an_argument_of_a_newer_kzoo_is_one_line(preset):
    change(preset / "config.json", config={"flash": True})
    refused(preset, "'flash'.*update")


def test_nothing_in_the_package_reads_a_pickle():
    for path in PACKAGE.rglob("*.py"):
        pickles = {"pickle", "dill", "joblib", "marshal"}
        if path == PACKAGE / "presets/tensor_files.py":  # it reads names of tensors
            pickles.remove("pickle")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            if isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            assert not {name.split(".")[0] for name in names} & pickles, path
            if isinstance(node, ast.Call):
                keywords = {word.arg: ast.unparse(word.value) for word in node.keywords}
                assert keywords.get("safe_mode", "True") == "True", path
                assert not ast.unparse(node.func).endswith("enable_unsafe_deserialization"), path
                if ast.unparse(node.func) == "np.load":
                    assert keywords.get("allow_pickle", "False") == "False", path
