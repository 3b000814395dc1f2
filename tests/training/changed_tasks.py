"""Tasks whose prepared run is changed, for tests of whole runs."""

import dataclasses
from typing import Any

import keras

from kzoo.training.prepared_run import Task
from kzoo.training.tasks import recipe_task


class Scorer(keras.callbacks.Callback):
    """Scores as another callback does, but gives no low scores, which take a search of their own.

    It may act at the end of a step.
    """

    def __init__(self, scorer: keras.callbacks.Callback, step: int | None = None, action=None):
        super().__init__()
        self.scorer, self.step, self.action = scorer, step, action

    def set_model(self, model):
        super().set_model(model)
        self.scorer.set_model(model)

    def on_train_begin(self, logs=None):
        if self.step == 0:
            self.action()

    def on_train_batch_end(self, batch, logs=None):
        if self.step and int(self.model.optimizer.iterations) == self.step:
            self.action()

    def on_epoch_end(self, epoch, logs=None):
        self.scorer.on_epoch_end(epoch, logs)

    def low_scores(self, translator):
        return {}


@dataclasses.dataclass(frozen=True)
class QuickTask(Task):
    """Another task without low scores, and the runs that it prepared; the rest is as in `quick_task`."""

    whole: Task | None = None
    prepared: list = dataclasses.field(default_factory=list)
    step: int | None = None
    action: Any = None
    scorer: Any = None

    def begin(self, folder):
        self.whole.begin(folder)

    def record_rows(self, folder):
        self.whole.record_rows(folder)

    def prepare(self, folder):
        run = self.whole.prepare(folder)
        scorer = Scorer(self.scorer or run.scorer, self.step, self.action)
        self.prepared.append(dataclasses.replace(run, scorer=scorer))
        return self.prepared[-1]


def quick_task(recipe, step: int | None = None, action=None, scorer=None):
    """Return a recipe's task without low scores, which does something at the end of a step.

    Step 0 is the beginning of training. A `scorer` replaces the task's, whose search each run compiles anew.
    """
    task = recipe_task(recipe)
    return QuickTask(recipe, task.corpus, whole=task, step=step, action=action, scorer=scorer)
