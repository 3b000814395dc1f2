"""A bundle from end to end, on a Python that has JAX and no TensorFlow: `make test-bundle`."""

import json
import os
import subprocess

import pytest

from kzoo.bundle import bundle
from kzoo.presets import load

SMALL = {"num_layers": 1, "width": 16, "num_heads": 2, "feedforward_dim": 16}
LINES = {"en": ["a man sleeps", "a dog runs"] * 20, "de": ["ein Mann schläft", "ein Hund rennt"] * 20}
CHECK = """
import importlib.util, sys
assert importlib.util.find_spec("jax") and not importlib.util.find_spec("tensorflow")
print("%d.%d" % sys.version_info[:2])
"""


@pytest.fixture
def python():
    """The interpreter, and its version."""
    path = os.environ.get("KZOO_JAX_PYTHON")
    if not path:
        pytest.skip("set KZOO_JAX_PYTHON to a Python 3.11 or 3.12 with JAX and without TensorFlow")
    found = subprocess.run([path, "-c", CHECK], capture_output=True, text=True, check=True)
    return path, found.stdout.strip()


def write_recipe(folder):
    paths = {"train": [], "val": [], "test": []}
    for split, files in paths.items():
        for code, lines in LINES.items():
            path = folder / f"{split}.{code}"
            path.write_text("\n".join(lines), encoding="utf-8")
            files.append(str(path))
    fields = {"preset": "pope_tiny", "corpus": "files", "source": "en", "target": "de", **paths}
    fields |= {"vocabulary_size": 40, "tokens": 128, "num_shapes": 1, "epochs": 2}
    recipe = folder / "small.toml"
    lines = [f"{key} = {json.dumps(value)}\n" for key, value in fields.items()]
    model = ", ".join(f"{key} = {value}" for key, value in SMALL.items())
    recipe.write_text("".join(lines) + f"model = {{ {model} }}\n")
    return str(recipe)


def run(python, folder, *overrides):
    kept = {"PATH", "HOME", "LANG", "TMPDIR"}
    environment = {name: value for name, value in os.environ.items() if name in kept} | {"PYTHON": python}
    command = ["bash", str(folder / "bundle" / "run.sh"), *overrides]
    cwd = folder / "there"
    return subprocess.run(command, cwd=cwd, env=environment, capture_output=True, text=True)


def test_trains_scores_and_leaves_weights_that_load(tmp_path, python):
    recipe = write_recipe(tmp_path)
    bundle([recipe, "vocabulary_size=5000", recipe], tmp_path / "bundle", python[1])
    (tmp_path / "there").mkdir()
    done = run(python[0], tmp_path)
    assert done.returncode == 1, done.stdout
    assert "error: 1 of 2 recipes failed: small.vocabulary_size-5000 (exit status 1" in done.stderr
    results = tmp_path / "there" / "results"
    subprocess.run(["sha256sum", "-c", "--quiet", "SHA256SUMS"], cwd=results, check=True)
    assert len((results / "small.history.csv").read_text().splitlines()) == 3
    scores = json.loads((results / "small.scores.json").read_text())["scores"]
    assert [(row["split"], row["sentences"]) for row in scores] == [("test", 40)]
    assert "nrefs:1" in scores[0]["signatures"]["bleu"]
    assert json.loads((results / "small.timing.json").read_text())["training_seconds"] > 0
    subprocess.run("cat small.preset.tar.* | tar x", shell=True, cwd=results, check=True)
    translated = json.loads((results / "small.translations.json").read_text())["test"]
    assert load(results / "small").translate(LINES["en"][:2]) == translated[:2]

    again = run(python[0], tmp_path)
    assert "finished before" in again.stdout
