"""Two workers of which one is told to stop, is killed, or cannot begin: both end, and nothing is lost."""

import dataclasses
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import h5py
import keras
import numpy as np
import pytest
from test_strategies import LONGEST, TOGETHER, end, outputs

from benchmarks.local_cluster import local_cluster
from kzoo.data import open_corpus
from kzoo.training import read_recipe

pytestmark = pytest.mark.skipif(not os.environ.get("KZOO_SLOW"), reason="takes minutes: KZOO_SLOW=1 runs it")
RECIPE = """preset = "pope_tiny"
model = {{ num_layers = 1, width = 16, num_heads = 2, feedforward_dim = 32, dropout = 0.1 }}
corpus = "files"
source = "en"
target = "de"
train = ["{0}/train.en", "{0}/train.de"]
val = ["{0}/val.en", "{0}/val.de"]
vocabulary_size = 300
tokens = 64
num_shapes = 1
epochs = 1
warmup_steps = 50
checkpoint_minutes = 0.02
"""


@pytest.fixture
def recipe(tmp_path):
    corpus = open_corpus("scenes")
    for split, count in (("train", 150), ("val", 5)):
        for language in ("en", "de"):
            lines = corpus.sentences(split, language)[:count]
            (tmp_path / f"{split}.{language}").write_text("\n".join(lines) + "\n")
    path = tmp_path / "recipe.toml"
    path.write_text(RECIPE.format(tmp_path))
    return path


def start_two(recipe: Path, folder: Path, overrides=("seed=1", "seed=1")) -> list[subprocess.Popen]:
    if keras.backend.backend() not in TOGETHER:
        pytest.skip("several processes train on TensorFlow and JAX")
    strategy = ["--strategy", TOGETHER[keras.backend.backend()]]
    command = [sys.executable, "-m", "kzoo", "train", "-o", str(folder), *strategy, str(recipe)]
    return [
        subprocess.Popen(
            [*command, override],
            env={**os.environ, **named},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for named, override in zip(local_cluster(2), overrides, strict=True)
    ]


def ended(running: list[subprocess.Popen]) -> list[str]:
    """Return what processes printed that must end with status 0."""
    printed = [text for text, _ in outputs(running)]
    for process, text in zip(running, printed, strict=True):
        assert process.returncode == 0, text[-3000:]
    return printed


def wait_for_a_checkpoint(running: list[subprocess.Popen], folder: Path):
    latest = time.monotonic() + LONGEST
    while not list(folder.glob("checkpoints/epoch_0000_batch_*")):
        if time.monotonic() > latest or any(process.poll() is not None for process in running):
            end(running)
            pytest.fail(f"no checkpoint: {outputs(running)}")
        time.sleep(0.1)


def weights(folder: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(folder / "preset" / "model.weights.h5") as file:
        file.visititems(lambda name, item: found.update({name: item[()]} if hasattr(item, "shape") else {}))
    return found


def test_sigterm_to_one_worker_saves_and_ends_both(recipe, tmp_path):
    ended(start_two(recipe, tmp_path / "unbroken"))
    running = start_two(recipe, tmp_path / "stopped")
    wait_for_a_checkpoint(running, tmp_path / "stopped")
    running[1].send_signal(signal.SIGTERM)
    assert all("SIGTERM: stopped after 0 epochs and" in text for text in ended(running)[:1])
    assert not (tmp_path / "stopped" / "preset").exists()
    ended(start_two(recipe, tmp_path / "stopped"))
    unbroken, continued = (weights(tmp_path / name) for name in ("unbroken", "stopped"))
    assert unbroken.keys() == continued.keys()
    assert unbroken
    for name, values in unbroken.items():
        np.testing.assert_allclose(continued[name], values, atol=1e-6, err_msg=name)


LOST = "error: lost the connection to another worker"


def refused(running: list[subprocess.Popen]) -> list[str]:
    """Return the last line of processes that must end with status 1 and without a traceback."""
    printed = [text for text, _ in outputs(running)]
    assert [process.returncode for process in running] == [1, 1], printed
    assert not any("Traceback" in text for text in printed), printed
    return [text.strip().splitlines()[-1] for text in printed]


@pytest.mark.parametrize("killed", [0, 1])
def test_a_worker_that_is_killed_ends_the_other_with_one_line(recipe, tmp_path, killed):
    running = start_two(recipe, tmp_path / "run")
    wait_for_a_checkpoint(running, tmp_path / "run")
    running[killed].kill()
    printed, _ = outputs(running)[1 - killed]
    assert running[1 - killed].returncode not in (0, None)
    assert LOST in printed.splitlines()[-1], printed
    assert "stack trace" not in printed
    assert "Traceback" not in printed
    ended(start_two(recipe, tmp_path / "run"))


def test_a_folder_of_another_recipe_ends_both_with_one_line(recipe, tmp_path):
    folder = tmp_path / "run"
    (folder / "checkpoints" / "epoch_0001").mkdir(parents=True)
    values = dataclasses.asdict(read_recipe(recipe, ["seed=9"]))
    (folder / "recipe.json").write_text(json.dumps(values))
    chief, other = refused(start_two(recipe, folder))
    assert chief.startswith(f"error: {folder} holds a run with another value of seed")
    assert other == "error: another worker cannot continue: see its output"
    assert json.loads((folder / "recipe.json").read_text()) == values


def test_a_worker_with_another_recipe_ends_both_with_one_line(recipe, tmp_path):
    chief, other = refused(start_two(recipe, tmp_path / "run", ("seed=1", "seed=2")))
    assert other.startswith("error: worker 2 has another recipe than worker 1")
    assert chief.startswith(LOST)
