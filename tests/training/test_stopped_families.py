"""A run of any family that was told to stop ends with the weights of one that was not, in any precision."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

import keras
import numpy as np
import pytest
from distributed_losses import FAMILIES

from kzoo.models import MultilingualTranslator, Translator
from kzoo.training import Recipe, train
from kzoo.training.tasks import Task, make_optimizer

MODULE = sys.modules["kzoo.training.run"]
RECIPE = Recipe(preset="pope_tiny", corpus="none", source="en", target="de", epochs=2, average=1)
WAYS = {
    "pope": {"warmup_steps": 50, "precision": "mixed_float16"},
    "image_text": {"warmup_steps": 50, "accumulate": 2},
    "glyph": {"optimizer": "adam", "rate": 1e-3, "clip_norm": 5.0},
    "attention_bridge": {"optimizer": "sgd", "rate": 0.1, "precision": "mixed_bfloat16"},
}


class FamilyTask(Task):
    """A task with a tiny model of a family and its batches, and a score that rises with the epochs."""

    validation = ("one", "two")
    family = None

    def begin(self, folder: Path):
        pass

    def build(self, folder: Path) -> keras.Model:
        backbone, _, loss, self.made = FAMILIES[self.family](dropout=0.3, dtype=self.recipe.precision)
        kind = MultilingualTranslator if self.family == "attention_bridge" else Translator
        model = kind(backbone, {})
        jit = keras.backend.backend() == "jax"  # what XLA would take on TensorFlow is not worth its time
        model.compile(make_optimizer(self.recipe, 16), loss, jit_compile=jit)
        return model

    def batches(self, model):
        return self.made

    def score(self, model):
        found = keras.callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: logs.update(val_bleu=float(epoch))
        )
        found.low_scores = lambda model: {}
        return found


@pytest.fixture(params=WAYS)
def recipe(request, monkeypatch):
    monkeypatch.setattr(MODULE, "OneDirection", FamilyTask)
    monkeypatch.setattr(MODULE, "recipe_corpus", lambda recipe: None)
    monkeypatch.setattr(MODULE, "write_low_scores", lambda folder, scores: None)
    monkeypatch.setattr(FamilyTask, "family", request.param)
    for kind in (Translator, MultilingualTranslator):
        monkeypatch.setattr(kind, "save_to_preset", lambda self, folder: None)
    return replace(RECIPE, **WAYS[request.param])


def state(model: keras.Model) -> list[np.ndarray]:
    """Return all that a step changes: weights, statistics, the optimizer's moments and its loss scale."""
    return [keras.ops.convert_to_numpy(v) for v in (*model.variables, *model.optimizer.variables)]


def test_a_stopped_run_goes_on_to_the_same_weights(recipe, tmp_path, monkeypatch):
    compare(recipe, tmp_path, monkeypatch, "one")


@pytest.mark.parametrize("recipe", ["pope"], indirect=True)
@pytest.mark.skipif(keras.backend.backend() != "tensorflow", reason="is about tf.distribute")
def test_a_stopped_run_under_tf_distribute_goes_on_to_the_same_weights(recipe, tmp_path, monkeypatch):
    """With as many steps as a run of two epochs has, which must be counted under tf.distribute too."""
    compare(replace(recipe, precision="float32", steps=12), tmp_path, monkeypatch, "mirrored")


def compare(recipe: Recipe, tmp_path: Path, monkeypatch, strategy: str):
    """Compare a run that is stopped in its first epoch and started again with one that is not."""
    unbroken = state(train(recipe, tmp_path / "unbroken", verbose=0, strategy=strategy))
    batch_end = MODULE.MostSteps.on_train_batch_end

    def stopping(callback, batch, logs=None):
        batch_end(callback, batch, logs)
        if batch == 2:
            os.kill(os.getpid(), signal.SIGTERM)

    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        patch.setattr(MODULE.MostSteps, "on_train_batch_end", stopping)
        train(recipe, tmp_path / "stopped", verbose=0, strategy=strategy)
    assert os.listdir(tmp_path / "stopped" / "checkpoints") == ["epoch_0000_batch_000003"]
    continued = state(train(recipe, tmp_path / "stopped", verbose=0, strategy=strategy))
    for one, other in zip(unbroken, continued, strict=True):
        np.testing.assert_array_equal(other, one)
