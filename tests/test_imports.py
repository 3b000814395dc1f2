"""Imports point one way, and light things stay light."""

import ast
import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

from kzoo.presets import pope_tiny
from kzoo.text import SubwordTokenizer, train_subwords

PACKAGE = Path(__file__).resolve().parents[1] / "kzoo"
# What each room may import from the package.
ALLOWED = {
    "layers": {"layers", "positions", "errors"},
    "engine": {"engine", "decoding", "hub", "text", "positions", "transformer_weights", "errors", "files"},
    "hub": {"hub", "decoding", "errors", "files"},
    "text": {"text", "errors"},
    "scenes": {"scenes", "errors"},
    "data": {"data", "scenes", "text", "errors", "files", "images"},
    "documents": {"documents", "data", "text", "errors", "files"},
    "decoding": {"decoding", "text", "errors", "images"},
    "models": {
        "sizes",
        "export_formats",
        "models",
        "layers",
        "data",  # `fit` makes batches of texts
        "decoding",
        "hub",
        "text",
        "errors",
        "files",
        "images",
    },
    "presets": {"presets", "models", "data", "decoding", "hub", "text", "errors", "files", "sizes"}
    | {"positions", "transformer_weights"},  # of models that are converted
    "evaluation": {"evaluation", "data", "scenes", "text", "errors", "files"},
    "export": {"export", "export_formats", "engine", "models", "decoding", "hub", "text", "errors", "files"},
    "serve": {
        "serve",
        "documents",
        "engine",
        "models",
        "presets",
        "decoding",
        "hub",
        "text",
        "errors",
        "files",
        "images",
    }
    | {"scenes"},  # the page's examples
    "cli": {
        "cli",
        "training",
        "evaluation",
        "data",
        "documents",
        "presets",
        "decoding",
        "export",
        "export_formats",
        "engine",
        "hub",
        "serve",
        "text",
    }
    | {"errors", "files", "images", "__version__"},
    "training": {
        "training",
        "data",
        "presets",
        "models",
        "layers",
        "decoding",
        "engine",
        "hub",
        "text",
        "errors",
        "files",
        "images",
    },
}


def imported(path: Path) -> set[str]:
    """Return the rooms of the package that a file imports, at any depth of its code."""
    rooms = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module] if node.module != "kzoo" else [f"kzoo.{a.name}" for a in node.names]
        rooms |= {name.split(".")[1] for name in names if name.startswith("kzoo.")}
    return rooms


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*/*.py")), ids=lambda p: str(p.relative_to(PACKAGE)))
def test_imports_point_one_way(path):
    room = path.relative_to(PACKAGE)
    assert imported(path) <= ALLOWED[room.parts[0]]


# Beside the export's graphs, what compiles for TensorFlow, what reads by `tf.data`, and what asks for
# `tf.distribute`'s strategies.
MAY_IMPORT_TENSORFLOW = {
    PACKAGE / "models" / "backbones.py",
    PACKAGE / "models" / "fitting.py",
    PACKAGE / "models" / "optimizers.py",
    PACKAGE / "training" / "compiling.py",
    PACKAGE / "training" / "report.py",
    PACKAGE / "training" / "strategies.py",
}


def test_tensorflow_is_imported_in_functions_of_few_files():
    for path in PACKAGE.rglob("*.py"):
        lines = path.read_text(encoding="utf-8").splitlines()
        found = [line for line in lines if "import tensorflow" in line]
        if path.parent.name == "export" and path.name.startswith("graph_"):
            continue  # imported when a graph is written
        if path in MAY_IMPORT_TENSORFLOW:
            found = [line for line in found if not line.startswith(" ")]
        assert not found, path


@pytest.mark.parametrize(
    ("package", "name", "nearest"),
    [("presets", "pope_tin", "pope_tiny"), ("layers", "PopeEmbedding", "PoPEEmbedding")],
)
def test_a_misspelt_name_is_answered_with_the_nearest(package, name, nearest):
    with pytest.raises(AttributeError, match=f"^kzoo.{package} .*'{name}'.* {nearest}"):
        getattr(importlib.import_module(f"kzoo.{package}"), name)


@pytest.mark.parametrize("stub", sorted(PACKAGE.rglob("__init__.pyi")), ids=lambda path: path.parent.name)
def test_what_a_package_lists_is_there(stub):
    package = importlib.import_module(".".join(stub.parent.relative_to(PACKAGE.parent).parts))
    assert package.__all__ and all(hasattr(package, name) for name in package.__all__)


# One process for several tests: importing Keras takes seconds.
IMPORTS = """
import builtins, importlib, pathlib, sys

ONE_SYSTEMS = {"fcntl", "grp", "pwd", "resource", "termios", "msvcrt", "winreg"}
found = builtins.__import__

def hiding(name, globals=None, *others, **named):
    # From kzoo alone: on Linux the standard library itself needs them.
    if name in ONE_SYSTEMS and (globals or {}).get("__name__", "").startswith("kzoo"):
        raise ModuleNotFoundError(name)
    return found(name, globals, *others, **named)

builtins.__import__ = hiding
import keras, kzoo.layers
known = keras.saving.get_custom_objects
print(*known())
import kzoo.models
print(*known())
package, file, preset = map(pathlib.Path, sys.argv[1:])
print(keras.saving.load_model(file).count_params())
import kzoo.presets
print(kzoo.presets.load(preset).count_params())
for path in sorted(package.rglob("*.py")):
    if path.name != "__main__.py":
        importlib.import_module(".".join(path.relative_to(package.parent).with_suffix("").parts).removesuffix(".__init__"))
"""


@pytest.fixture(scope="module")
def translator():
    return pope_tiny(SubwordTokenizer(train_subwords(["a man", "a dog"] * 9, 20)), num_layers=1, width=16)


@pytest.fixture(scope="module")
def imported_afresh(translator, tmp_path_factory):
    """The process, which has ended: what Keras knows and two sizes are its output, a line each."""
    folder = tmp_path_factory.mktemp("saved")
    translator.save(folder / "translator.keras")
    translator.save_to_preset(folder / "preset")
    arguments = (PACKAGE, folder / "translator.keras", folder / "preset")
    done = subprocess.run([sys.executable, "-c", IMPORTS, *arguments], capture_output=True, text=True)
    print(done.stderr)
    return done


def test_importing_the_layers_or_the_models_makes_them_known_to_keras(imported_afresh):
    """So that `keras.models.load_model` finds what a file names."""
    registered = {"layers": set(), "": set()}
    for path in PACKAGE.rglob("*.py"):
        found = re.findall(r'register_keras_serializable\("kzoo"\)\nclass (\w+)', path.read_text("utf-8"))
        registered["layers" if path.parent.name == "layers" else ""].update(f"kzoo>{name}" for name in found)
    layers, everything = (set(line.split()) for line in imported_afresh.stdout.splitlines()[:2])
    assert layers >= registered["layers"]
    assert everything >= registered["layers"] | registered[""]


def test_a_fresh_process_loads_files_and_presets(translator, imported_afresh):
    """A file with the models imported, a preset with the presets, and nothing else before."""
    assert [*map(int, imported_afresh.stdout.splitlines()[2:])] == [translator.count_params()] * 2


def test_everything_can_be_imported_where_modules_of_one_system_are_missing(imported_afresh):
    assert imported_afresh.returncode == 0, imported_afresh.stderr


@pytest.mark.parametrize(
    "code",
    [
        "import kzoo",
        "import kzoo.cli",
        "import kzoo.images",
        "from kzoo.presets import list_presets; list_presets()",
        "from kzoo.data import open_corpus; open_corpus('scenes').pairs('val', 'en', 'de')",
        "from kzoo.documents import is_document; is_document('a.docx')",
        "from kzoo.export import export_argos, export_ctranslate2, export_saved_model",
        "from kzoo.training.recipe_files import read_recipe",
    ],
)
def test_light_things_import_no_deep_learning(code):
    check = "import sys; assert not {'keras', 'tensorflow', 'jax', 'torch'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", f"{code}; {check}"], check=True)


# What the extras `documents` and `serve` install.
OPTIONAL = {
    *("lxml", "pyarrow", "bs4", "translate"),
    *("starlette", "uvicorn", "prometheus_client", "babel", "py3langid", "python_multipart"),
}
TRANSLATED = """
import sys
from kzoo.cli import app
app(["translate", "pope_small_multi30k_en_de", "A dog runs."], standalone_mode=False)
print(*{name.partition(".")[0] for name in sys.modules})
"""


def test_a_sentence_is_translated_without_keras_and_what_is_optional():
    pytest.importorskip("ctranslate2")
    done = subprocess.run(
        [sys.executable, "-c", TRANSLATED], check=True, stdout=subprocess.PIPE, text=True, encoding="utf-8"
    )
    sentence, modules = done.stdout.splitlines()
    assert sentence == "Ein Hund rennt."
    assert not set(modules.split()) & (OPTIONAL | {"keras", "tensorflow", "jax", "torch"})
