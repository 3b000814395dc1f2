"""`kzoo train`: trains a recipe's model in a folder, with checkpoints, history and the trained preset."""

import contextlib
import dataclasses
import functools
import hashlib
import json
import sys
import time
from pathlib import Path
from typing import Any

import keras

from kzoo.data import TwiceEachRow
from kzoo.data.batches import sample_of
from kzoo.errors import UserError
from kzoo.files import remove_unfinished
from kzoo.hub.location import RECIPE_FILE
from kzoo.hub.preset import write_low_scores
from kzoo.text.vocabulary import unknown_line
from kzoo.training.checkpoints import Checkpoints, updates
from kzoo.training.compiling import compile_step, tune_process
from kzoo.training.corpus import recipe_corpus, record_held_out
from kzoo.training.language_model import train_language_model
from kzoo.training.recipe import Recipe, check_recipe
from kzoo.training.report import CountedBatches, History, RunReport, curves, print_report
from kzoo.training.resuming import Preemption, fit_from
from kzoo.training.run_folder import claim, one_process, record
from kzoo.training.strategies import Strategy, open_strategy
from kzoo.training.tasks import OneDirection, SeveralDirections
from kzoo.training.trained_rows import odd_rows_line


def train(
    recipe: Recipe,
    folder: str | Path,
    verbose: str | int = "auto",
    strategy: str | Strategy = "",
) -> Any:
    """Train a recipe's model, or resume a run that was stopped.

    Writes to the run's folder: `recipe.json`; `subwords.*.model` and other files that the text needs, or the
    preset to fine-tune in `start/`; `held_out.json`, digests of your own validation and test text;
    `trained_rows.bin`, digests of the training text's rows; `language_model/`, `compiled.json`,
    `checkpoints/`, `history.csv` and `tensorboard/`; and finally `preset/`.

    Args:
        recipe: what to train.
        folder: the run's folder. It must not hold a run of another recipe. A resumed run may raise `epochs`
            and change the other `may_differ` keys of `Recipe`, but no others.
        verbose: as in `keras.Model.fit`; `"auto"` is a progress bar on a terminal or in a notebook, elsewhere
            a line per epoch. Unless it is 0, a table at the end reports the speed.
        strategy: where to train, one of `kzoo.training.strategies.STRATEGIES`; by default on
            all processes that the environment names, else on all GPUs, else on one device.

    Returns:
        The `Translator` or `MultilingualTranslator` with its final weights: the mean of the recipe's best
        checkpoints.

    Raises:
        UserError: the corpus, the recipe or the folder cannot be used; another process trains in the folder;
            a loss is not finite; or the disk is full.
        SystemExit: with status 0, on SIGTERM: the run is saved, and resumes when it is started again.
    """
    recipe, folder = check_recipe(recipe), Path(folder)
    tune_process()
    if verbose == "auto":
        verbose = 1 if sys.stdout.isatty() or "ipykernel" in sys.modules else 2
    with contextlib.ExitStack() as held:
        strategy = held.enter_context(open_strategy(strategy))
        preemption = Preemption()
        if strategy.workers == 1:  # several workers handle signals only once there is something to save
            held.enter_context(preemption.listening())
        began, prints = time.perf_counter(), verbose and strategy.is_chief
        _check_possible(recipe, strategy)
        task = (SeveralDirections if recipe.languages else OneDirection)(recipe, recipe_corpus(recipe))

        # Prepare the run's folder, the model and its batches.
        def begin():
            held.enter_context(one_process(folder))
            claim(folder, recipe)
            remove_unfinished(folder)
            task.begin(folder)

        strategy.together(lambda: strategy.is_chief and begin())
        everywhere = dataclasses.replace(recipe, shards="", images="")  # may differ between workers
        strategy.check_same("another recipe", json.dumps(dataclasses.asdict(everywhere)))
        if not (folder / RECIPE_FILE).exists():
            raise UserError(
                f"{folder} is not the folder that worker 1 uses: give all workers the same folder"
            )
        keras.utils.set_random_seed(recipe.seed)
        with strategy.scope():
            translator = task.build(folder)
        batches = task.batches(translator)

        # Resume from the last checkpoint, if there is one.
        digest = hashlib.sha256(f"{batches.digest()} {json.dumps(task.validation)}".encode())
        if (images := task.images.get("validation")) is not None:
            digest.update(sample_of(images))
        data = digest.hexdigest()
        strategy.check_same("other data", data)
        if prints:
            for line in filter(None, (unknown_line(task.unknown), odd_rows_line(task.sides))):
                print(line)
        preemption.checkpoints = checkpoints = Checkpoints(
            folder / "checkpoints",
            keep_best=recipe.average,
            keep_last=recipe.checkpoints_kept,
            minutes=recipe.checkpoint_minutes,
            data=data,
            strategy=strategy,
        )
        checkpoints.set_model(translator)
        held.enter_context(preemption.listening())  # again: it saves before the folder is unlocked
        with strategy.scope():
            checkpoints.restore()
        if strategy.is_chief:
            record(folder, recipe)  # keys with `may_differ` may have changed
            record_held_out(folder, recipe, task.corpus)
            if checkpoints.step == 0:
                task.record_rows(folder)
        counted = CountedBatches(batches)
        report = RunReport(counted, checkpoints, began)
        if recipe.language_model_epochs and checkpoints.step == 0:
            seeds = checkpoints.seeds()
            validation, epochs = task.validation_batches(translator), recipe.language_model_epochs
            shared = strategy.share(batches)
            train_language_model(translator, shared, validation, epochs, folder, preemption, verbose)
            checkpoints.assign_seeds(seeds)  # as in a resumed run, which does not train the decoder again

        # Train the remaining steps. If none remain, the last epoch may still have to be scored.
        history = History(folder / "history.csv", checkpoints, recipe.patience)
        scorer = task.score(translator)
        callbacks = [
            *rate_callbacks(recipe),
            MostSteps(recipe.steps),
            report,
            # Before scoring: a model with NaN weights cannot translate.
            keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: checkpoints.check_finite()),
            *preemption.scoring(scorer),
            *strategy.same_logs(),
            checkpoints,
            history,
            *(curves(folder / "tensorboard") if strategy.is_chief else ()),
            preemption,
        ]
        shared, counted = strategy.share(batches), strategy.share(counted)
        if recipe.consistency:
            shared, counted = TwiceEachRow(shared), TwiceEachRow(counted)
        done = bool(recipe.steps) and updates(translator) >= recipe.steps
        batch = checkpoints.batch and (len(batches) if done else checkpoints.batch)
        if checkpoints.epoch < recipe.epochs and (batch or not done) and not history.out_of_patience:
            steps = planned_steps(recipe, len(batches))
            report.compiled = compile_step(translator, shared, steps, checkpoints.step > 0, folder)
            if prints:
                print(f"the loss is in nats per {task.loss_unit}")
            if prints and (advice := too_long_a_warm_up(recipe, len(batches))):
                print(advice)
            fit_from(checkpoints.epoch, batch, translator, counted, recipe.epochs, callbacks, verbose)
        elif prints and checkpoints.epoch < recipe.epochs:
            print(f"{'steps' if done else 'patience'} ended this run after {checkpoints.epoch} epochs")

        # Write the trained preset, with the mean of the best checkpoints' weights.
        strategy.wait()  # for the chief's last checkpoint
        history.write()  # in case the run was killed after its last checkpoint
        checkpoints.load_average_of_best()
        low_scores = scorer.low_scores(translator)
        with strategy.own_place(folder / "preset") as preset:
            translator.save_to_preset(preset)
            write_low_scores(preset, low_scores)
        strategy.wait()
        if prints:
            print_report(report)
    return translator


def _check_possible(recipe: Recipe, strategy: Strategy):
    if (recipe.accumulate > 1 or recipe.precision == "mixed_float16") and not strategy.accumulates_and_scales:
        raise UserError(
            "under tf.distribute, Keras neither accumulates gradients nor scales float16 losses: "
            "raise tokens, use mixed_bfloat16, or use data_parallel on JAX"
        )


def too_long_a_warm_up(recipe: Recipe, batches: int) -> str:
    """Return advice if training ends within the warm-up, else "". `batches` is the number per epoch."""
    steps = planned_steps(recipe, batches)
    if recipe.optimizer != "noam" or steps >= recipe.warmup_steps:
        return ""
    limit = "steps" if recipe.steps and recipe.steps == steps else "epochs"
    return (
        f"this run ends after {steps:,} steps, within the warm-up of {recipe.warmup_steps:,} steps: "
        f"its learning rate stays low; lower warmup_steps, or raise {limit}"
    )


def planned_steps(recipe: Recipe, batches: int) -> int:
    """Return how many steps a run has unless patience ends it. `batches` is the number per epoch."""
    steps = recipe.epochs * batches // recipe.accumulate
    return min(steps, recipe.steps) if recipe.steps else steps


def rate_callbacks(recipe: Recipe) -> list[keras.callbacks.Callback]:
    """Return the callback that halves the learning rate, if the recipe does so."""
    rate = functools.partial(halved_rate, recipe.rate, recipe.halve_after)
    return [keras.callbacks.LearningRateScheduler(rate)] if recipe.halve_after else []


def halved_rate(rate: float, halve_after: int, epoch: int) -> float:
    """Return the learning rate of an epoch, counted from 0.

    It is constant for `halve_after` epochs, then halved every epoch, down to 1e-5 (Broscheit et al. 2018,
    Section 4.2).
    """
    return max(rate * 0.5 ** max(0, epoch + 1 - halve_after), min(rate, 1e-5))


class MostSteps(keras.callbacks.Callback):
    """Stops training after `steps` weight updates; 0 never stops it."""

    def __init__(self, steps: int):
        super().__init__()
        self.steps, self._left = steps, 0

    def on_train_batch_end(self, batch, logs=None):
        self._left -= 1
        if self.steps and self._left <= 0:  # reading the count at every batch would wait for the device
            self._left = self.steps - updates(self.model)
            self.model.stop_training = self.model.stop_training or self._left <= 0

    def on_epoch_end(self, epoch, logs=None):
        self._left = 0  # count again: a resumed epoch may have no batch left
        self.on_train_batch_end(None)
