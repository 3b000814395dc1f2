"""Tasks whose prepared run is changed, for tests of whole runs."""

import dataclasses

import keras

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


def quick_task(recipe, step: int | None = None, action=None, scorer=None):
    """Return a recipe's task without low scores, which does something at the end of a step.

    Step 0 is the beginning of training. A `scorer` replaces the task's, whose search each run compiles anew.
    """
    task = recipe_task(recipe)
    prepare = task.prepare

    def changed(folder):
        run = prepare(folder)
        return dataclasses.replace(run, scorer=Scorer(scorer or run.scorer, step, action))

    task.prepare = changed
    return task
