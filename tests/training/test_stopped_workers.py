"""Two workers of which one is told to stop: both save, end with status 0, and go on to the same weights."""

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
from test_strategies import TOGETHER

from kzoo.data import open_corpus
from kzoo.training.clusters import local_cluster

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


def start_two(recipe: Path, folder: Path) -> list[subprocess.Popen]:
    strategy = ["--strategy", TOGETHER[keras.backend.backend()]]
    command = [sys.executable, "-m", "kzoo.cli", "train", str(recipe), "-o", str(folder), *strategy]
    return [
        subprocess.Popen(
            command,
            env={**os.environ, **named},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for named in local_cluster(2)
    ]


def ended(running: list[subprocess.Popen]) -> list[str]:
    """Return what processes printed that must end with status 0."""
    printed = [process.communicate()[0] for process in running]
    for process, text in zip(running, printed, strict=True):
        assert process.returncode == 0, text[-3000:]
    return printed


def weights(folder: Path) -> dict[str, np.ndarray]:
    found = {}
    with h5py.File(folder / "preset" / "model.weights.h5") as file:
        file.visititems(lambda name, item: found.update({name: item[()]} if hasattr(item, "shape") else {}))
    return found


def test_sigterm_to_one_worker_saves_and_ends_both(recipe, tmp_path):
    if keras.backend.backend() not in TOGETHER:
        pytest.skip("several processes train on TensorFlow and JAX")
    ended(start_two(recipe, tmp_path / "unbroken"))
    running = start_two(recipe, tmp_path / "stopped")
    while not list((tmp_path / "stopped").glob("checkpoints/epoch_0000_batch_*")):
        assert all(process.poll() is None for process in running), ended(running)
        time.sleep(0.1)
    running[1].send_signal(signal.SIGTERM)
    assert all("SIGTERM: stopped after 0 epochs and" in text for text in ended(running)[:1])
    assert not (tmp_path / "stopped" / "preset").exists()
    ended(start_two(recipe, tmp_path / "stopped"))
    unbroken, continued = (weights(tmp_path / name) for name in ("unbroken", "stopped"))
    assert unbroken.keys() == continued.keys()
    assert unbroken
    for name, values in unbroken.items():
        np.testing.assert_allclose(continued[name], values, atol=1e-6, err_msg=name)
