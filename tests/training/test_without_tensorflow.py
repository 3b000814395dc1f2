"""On JAX everything but text export works without TensorFlow, and the commands do not import it."""

import importlib.util
import os
import subprocess
import sys

import pytest

MISSING = """
import importlib.abc, sys

class Missing(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.split(".")[0] in ("tensorflow", "tensorflow_text"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
import importlib.util
find_spec = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "tensorflow" else find_spec(name, *rest)
"""
INSTALLED = """
import sys
from kzoo.cli.console import start_backend
start_backend()
"""
PROGRAM = """
from kzoo.presets import load
from kzoo.training import Recipe, train

small = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16}
folder = sys.argv[1]
english, german = ["a man sleeps", "a dog runs"] * 20, ["ein Mann schläft", "ein Hund rennt"] * 20
for name, lines in (("en", english), ("de", german)):
    with open(f"{folder}/text.{name}", "w", encoding="utf-8") as file:
        file.write("\\n".join(lines))
files = [f"{folder}/text.en", f"{folder}/text.de"]
recipe = Recipe("pope_tiny", "files", "en", "de", model=small, train=files, val=files, vocabulary_size=40,
                tokens=128, num_shapes=1, epochs=1, beam_size=1)
expected = train(recipe, f"{folder}/run", verbose=0)
assert len(load(f"{folder}/run").translate(["a man sleeps", ""])) == 2
assert not sys.modules.get("tensorflow")
"""


@pytest.mark.skipif(importlib.util.find_spec("jax") is None, reason="JAX is not installed")
@pytest.mark.parametrize("start", [MISSING, INSTALLED], ids=["missing", "installed"])
def test_trains_loads_and_translates(start, tmp_path):
    environment = {**os.environ, "KERAS_BACKEND": "jax"}
    done = subprocess.run(
        [sys.executable, "-c", start + PROGRAM, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-2000:]
