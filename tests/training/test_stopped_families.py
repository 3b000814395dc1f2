"""A run of any family that was told to stop ends with the weights of one that was not, in any precision."""

import os
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import keras
import numpy as np
import pytest
from distributed_losses import FAMILIES

from kzoo.models import MultilingualTranslator, Translator
from kzoo.training import Recipe
from kzoo.training.optimizer import make_optimizer
from kzoo.training.prepared_run import PreparedRun, Task
from kzoo.training.run import train_task

RECIPE = Recipe(preset="pope_tiny", corpus="none", source="en", target="de", epochs=2, average=1)
WAYS = {
    "pope": {"warmup_steps": 50, "precision": "mixed_float16"},
    "image_text": {"warmup_steps": 50, "accumulate": 2},
    "glyph": {"optimizer": "adam", "rate": 1e-3, "clip_norm": 5.0},
    "attention_bridge": {"optimizer": "sgd", "rate": 0.1, "precision": "mixed_bfloat16"},
}


class Unsaved:
    """Without tokenizers, no preset can be written."""

    def save_to_preset(self, folder: Path):
        folder.mkdir(exist_ok=True)
        (folder / "metadata.json").write_text("{}")


class OneWay(Unsaved, Translator):
    pass


class Multilingual(Unsaved, MultilingualTranslator):
    pass


class Score(keras.callbacks.Callback):
    """A score that rises with the epochs. It may end the process's run after the third batch."""

    def __init__(self, stops: bool):
        super().__init__()
        self.stops = stops

    def on_train_batch_end(self, batch, logs=None):
        if self.stops and batch == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    def on_epoch_end(self, epoch, logs=None):
        logs["val_bleu"] = float(epoch)

    def low_scores(self, model):
        return {}


class FamilyTask(Task):
    """A task with a tiny model of a family and its batches, and that score."""

    def __init__(self, family: str, stops: bool, recipe: Recipe):
        super().__init__(recipe)
        self.family, self.stops = family, stops

    def begin(self, folder: Path):
        pass

    def prepare(self, folder: Path) -> PreparedRun:
        backbone, _, loss, batches = FAMILIES[self.family](dropout=0.3, dtype=self.recipe.precision)
        model = (Multilingual if self.family == "attention_bridge" else OneWay)(backbone, {})
        jit = keras.backend.backend() == "jax"  # what XLA would take on TensorFlow is not worth its time
        model.compile(make_optimizer(self.recipe, 16), loss, jit_compile=jit)
        return PreparedRun(model, batches, Score(self.stops), batches.digest())


def state(model: keras.Model) -> list[np.ndarray]:
    """Return all that a step changes: weights, statistics, the optimizer's moments and its loss scale."""
    return [keras.ops.convert_to_numpy(v) for v in (*model.variables, *model.optimizer.variables)]


@pytest.mark.parametrize("family", WAYS)
def test_a_stopped_run_goes_on_to_the_same_weights(family, tmp_path):
    compare(family, WAYS[family], tmp_path, "one")


@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is about tf.distribute")
def test_a_stopped_run_under_tf_distribute_goes_on_to_the_same_weights(tmp_path):
    """With as many steps as a run of two epochs has, which must be counted under tf.distribute too."""
    compare("pope", {"warmup_steps": 50, "steps": 12}, tmp_path, "mirrored")


def compare(family: str, values: dict, tmp_path: Path, strategy: str):
    """Compare a run that is stopped in its first epoch and started again with one that is not."""

    def run(name: str, stops: bool = False):
        task = partial(FamilyTask, family, stops)
        return train_task(task, replace(RECIPE, **values), tmp_path / name, 0, strategy)

    unbroken = state(run("unbroken"))
    with pytest.raises(SystemExit):
        run("stopped", stops=True)
    assert os.listdir(tmp_path / "stopped" / "checkpoints") == ["epoch_0000_batch_000003"]
    continued = state(run("stopped"))
    for one, other in zip(unbroken, continued, strict=True):
        np.testing.assert_array_equal(other, one)
