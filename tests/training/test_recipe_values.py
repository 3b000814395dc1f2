"""A recipe's values reach what trains: the optimizer, the loss, the batches, the callbacks, the seeds."""

import random
from dataclasses import replace

import keras
import pytest

from kzoo.cli.text_to_score import own_corpus
from kzoo.data import Batches, open_corpus
from kzoo.errors import UserError
from kzoo.hub import Preset
from kzoo.models import Adam
from kzoo.training import Recipe
from kzoo.training.corpus import recipe_corpus
from kzoo.training.prepared_run import PreparedRun, Task
from kzoo.training.run import train_task
from kzoo.training.tasks import recipe_task

RECIPE = Recipe(
    preset="pope_tiny",
    corpus="scenes",
    source="en",
    target="de",
    model={"num_layers": 1, "width": 8, "num_heads": 2, "feedforward_dim": 8, "max_length": 64},
    vocabulary_size=300,
    tokens=200,
    num_shapes=2,
    optimizer="adam",
    rate=0.03,
    halve_after=2,
    label_smoothing=0.25,
    clip_norm=2.5,
    accumulate=3,
    precision="mixed_bfloat16",
    steps=9,
    patience=4,
    average=3,
    checkpoint_minutes=2.5,
    seed=7,
)


def test_what_is_compiled_and_the_batches(tmp_path, few_scenes):
    task = recipe_task(RECIPE, open_corpus("scenes"))
    run = task.prepare(tmp_path)
    translator, batches = run.translator, run.batches
    optimizer = translator.optimizer
    assert type(optimizer) is Adam
    assert float(optimizer.learning_rate) == pytest.approx(0.03)
    assert (optimizer.global_clipnorm, optimizer.gradient_accumulation_steps) == (2.5, 3)
    assert translator.loss.label_smoothing == 0.25
    assert translator.backbone.dtype_policy.name == "mixed_bfloat16"
    assert (batches.seed, len(batches.shapes)) == (7, 2)
    assert 100 < max(rows * length for rows, length in batches.shapes) <= 200


class Reached(Exception):
    """Training would begin now."""


class Unfitted(keras.Sequential):
    """A model of nothing that keeps the callbacks of its training."""

    def fit(self, batches, callbacks, **options):
        self.found = {type(callback).__name__: callback for callback in callbacks}
        raise Reached


class ShortTask(Task):
    """A task with that model and a few batches."""

    def begin(self, folder):
        pass

    def prepare(self, folder):
        self.model = Unfitted()
        self.model.compile("sgd")
        batches = Batches([[5, 6]] * 9, [[7]] * 9, tokens=9, num_shapes=1)
        return PreparedRun(self.model, batches, keras.callbacks.Callback(), "data")


def test_callbacks_and_checkpoints(tmp_path, capsys):
    task = ShortTask(RECIPE)
    with pytest.raises(Reached):
        train_task(lambda recipe: task, RECIPE, tmp_path / "run", strategy="one")
    found = task.model.found
    assert "per token" in capsys.readouterr().out
    assert found["LearningRateScheduler"].schedule(2) == 0.03 / 2
    assert (found["MostSteps"].steps, found["History"].patience) == (9, 4)
    checkpoints = found["Checkpoints"]
    assert (checkpoints.keep_best, checkpoints.minutes) == (3, 2.5)


def test_a_run_records_the_rows_that_it_holds_out(tmp_path):
    table = tmp_path / "pairs.tsv"
    table.write_text("".join(f"sentence {n}\tein Satz {n}\n" for n in range(50)))
    recipe = replace(RECIPE, corpus="files", train=[str(table)], val=5, test=5)
    task = ShortTask(recipe, recipe_corpus(recipe))
    with pytest.raises(Reached):
        train_task(lambda recipe: task, recipe, tmp_path / "run", strategy="one")
    assert own_corpus(Preset(tmp_path / "run" / "preset"), []).sentences("test", "en")
    table.write_text("".join(f"sentence {n}\tein Satz {n}\n" for n in range(50, 100)))
    with pytest.raises(UserError, match="--corpus"):
        own_corpus(Preset(tmp_path / "run" / "preset"), [])


def test_the_seed_fixes_what_the_model_begins_with(tmp_path):
    class DrawingTask(ShortTask):
        def prepare(self, folder):
            drawn.append(random.random())
            raise Reached

    drawn = []
    for seed in (7, 8):
        with pytest.raises(Reached):
            train_task(DrawingTask, replace(RECIPE, seed=seed), tmp_path / str(seed), strategy="one")
    assert drawn == [random.Random(7).random(), random.Random(8).random()]
